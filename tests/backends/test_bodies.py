"""Answers are read out of every dialect; what is no answer is an error that shows it."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.backends.bodies import read_answer
from batchrank.calls import Answer, Usage
from batchrank.errors import BadResponseError, ContextOverflowError, ServerError


def chat(message: object, finish: object = "stop", **more: object) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return orjson.dumps({"choices": [choice], **more})


def test_openai_chat() -> None:
    body = chat(
        {"role": "assistant", "content": "[2] > [1]", "reasoning_content": "Hm."},
        usage={"prompt_tokens": 12, "completion_tokens": 7},
    )
    assert read_answer(body) == Answer("[2] > [1]", "Hm.", "stop", Usage(12, 7))


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content", "thinking"])
def test_reasoning_is_kept_apart(name: str) -> None:
    assert read_answer(chat({"content": None, name: "First 2."})) == Answer("", "First 2.")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": None}, ""),
        ({"content": ""}, ""),
        ({"content": "", "tool_calls": [{"function": {"arguments": "[1]"}}]}, ""),
        ({}, ""),
        (
            {"content": [{"type": "text", "text": "[1]"}, {"type": "text", "text": ">[2]"}]},
            "[1]>[2]",
        ),
        ({"content": ["[1]", {"type": "thinking", "text": "[9]"}]}, "[1]"),
    ],
)
def test_content_of_any_shape_is_text(message: object, expected: str) -> None:
    assert read_answer(chat(message)).text == expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("length", "length"),
        ("max_tokens", "length"),
        (None, "stop"),
        ("content_filter", "content_filter"),
    ],
)
def test_finish_is_in_openai_words(reason: object, expected: str) -> None:
    assert read_answer(chat({"content": "x"}, reason)).finish == expected


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": "9", "completion_tokens": -1}, {"prompt_tokens": True}]
)
def test_usage_that_says_nothing_is_zero(usage: object) -> None:
    assert read_answer(chat({"content": "x"}, usage=usage)).usage == Usage(0, 0)


def test_ollama_chat() -> None:
    body = orjson.dumps(
        {
            "message": {"role": "assistant", "content": "[1]", "thinking": "Hm."},
            "done": True,
            "done_reason": "length",
            "prompt_eval_count": 23,
            "eval_count": 4,
        }
    )
    assert read_answer(body) == Answer("[1]", "Hm.", "length", Usage(23, 4))


def test_ollama_generate() -> None:
    body = orjson.dumps({"response": "[1]", "thinking": "Hm.", "done": True})
    assert read_answer(body) == Answer("[1]", "Hm.")


def test_server_sent_events_are_joined() -> None:
    chunks: list[dict[str, object]] = [
        {"choices": [{"delta": {"role": "assistant", "content": None, "reasoning": "Hm."}}]},
        {"choices": [{"delta": {"content": "[2]"}}]},
        {"choices": [{"delta": {"content": " > [1]"}, "finish_reason": "length"}]},
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
    ]
    events = b"".join(b"event: chunk\r\ndata: %b\r\n\r\n" % orjson.dumps(chunk) for chunk in chunks)
    body = b": keep-alive\n\n" + events + b"data: [DONE]\n\n"
    assert read_answer(body) == Answer("[2] > [1]", "Hm.", "length", Usage(9, 3))


def test_json_lines_are_joined() -> None:
    body = (
        b'{"message":{"content":"[2]"},"done":false}\n'
        b'{"message":{"content":" > [1]"},"done":false}\n'
        b'{"message":{"content":""},"done":true,"prompt_eval_count":5}\n'
    )
    assert read_answer(body) == Answer("[2] > [1]", usage=Usage(5, 0))


@pytest.mark.parametrize(
    "body",
    [
        b'{"message":{"content":"[2]"},"done":false}\n{"message":{"content":" >"},"done":false}\n',
        b'{"message":{"content":"[2]"},"done":false}',
        b'data: {"choices":[{"delta":{"content":"[2]"}}]}\n\n',
    ],
)
def test_a_stream_that_breaks_off_is_no_answer(body: bytes) -> None:
    with pytest.raises(BadResponseError, match="broke off"):
        read_answer(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \n",
        b"<html><body>Sign in 502</body></html>",
        b'{"choices": [{"message": {"content": "[1',
        b"[1, 2]",
        b"null",
        b'"[1] > [2]"',
        b"{}",
        b'{"choices": []}',
        b'{"choices": [7]}',
        b'{"choices": [{"finish_reason": "stop"}]}',
        b'{"choices": [{"message": "[1]"}]}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"choices": {"message": {"content": "x"}}}',
        b'{"custom_id": "q1", "error": null, "response": {"status_code": 400, "body": {}}}',
        b"\xff\xfe[1]",
        b"[" * 5000,
        chat({"content": "[1] >"}, "abort"),
    ],
)
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    with pytest.raises(BadResponseError):
        read_answer(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": "something broke 1 2 3"}',
        b'{"error": {"message": "something broke 1 2 3"}}',
        b'{"object": "error", "message": "something broke 1 2 3"}',
        b'{"choices": [{"error": {"message": "something broke 1 2 3"}}]}',
        b'{"message":{"content":"[2]"},"done":false}\n{"error":"something broke 1 2 3"}\n',
        b'data: {"choices":[{"delta":{}}]}\n\nerror: {"error": "something broke 1 2 3"}',
    ],
)
def test_an_error_object_is_never_an_answer(body: bytes) -> None:
    with pytest.raises(BadResponseError, match="something broke 1 2 3"):
        read_answer(body)


def test_an_overflow_with_status_200_is_one() -> None:
    body = b'{"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 8}}'
    with pytest.raises(ContextOverflowError) as caught:
        read_answer(body)
    assert (caught.value.prompt_tokens, caught.value.context) == (9, 8)


def test_messages_show_200_characters_and_no_raw_control_characters() -> None:
    with pytest.raises(BadResponseError) as caught:
        read_answer(b"\x1b[2J\n\x00" + b"a" * 5000)
    message = str(caught.value)
    assert "\\x1b[2J\\n\\x00a" in message
    assert message.isprintable()
    assert message.count("a" * 194) == 1
    assert "a" * 195 not in message


WORDS = st.sampled_from(
    ["choices", "message", "delta", "content", "error", "usage", "done", "response", "code",
     "finish_reason", "reasoning", "type", "text", "object", "data: ", "stop"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-5, 600) | st.floats(allow_nan=False) | WORDS
VALUES = st.recursive(
    SCALARS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
BODIES = (
    st.binary(max_size=80)
    | VALUES.map(orjson.dumps)
    | st.lists(VALUES.map(orjson.dumps), max_size=3).map(b"\ndata: ".join)
)


def outcome(body: bytes) -> Answer | ServerError:
    try:
        return read_answer(body)
    except ServerError as error:
        return error


@given(BODIES)
def test_any_bytes_give_an_answer_or_a_server_error(body: bytes) -> None:
    result = outcome(body)
    assert isinstance(result.text, str) if isinstance(result, Answer) else str(result).isprintable()
