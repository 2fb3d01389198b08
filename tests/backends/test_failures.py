"""A failed status and its body become the error that says what to do next."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.backends.failures import failure
from batchrank.errors import (
    BadResponseError,
    ContextOverflowError,
    FatalServerError,
    OverloadedError,
    RefusedError,
    ServerError,
    UnavailableError,
)
from tests.backends.test_bodies import BODIES


def openai(message: str, **more: object) -> bytes:
    return orjson.dumps({"error": {"message": message, **more}})


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, openai("bad field"), RefusedError),
        (404, b'{"detail": "Not Found"}', RefusedError),
        (404, b"404 page not found", BadResponseError),
        (405, b"", RefusedError),
        (413, b"<html>413</html>", RefusedError),
        (422, b'{"detail": [{"msg": "field required"}]}', RefusedError),
        (501, openai("not supported"), RefusedError),
        (401, openai("Incorrect API key provided: sk-1234"), FatalServerError),
        (403, b"<html>", FatalServerError),
        (404, b'{"error": "model \\"qwen9\\" not found, try pulling it first"}', FatalServerError),
        (404, openai("The model `m` does not exist."), FatalServerError),
        (400, openai("Invalid model", code="model_not_found"), FatalServerError),
        (404, openai("No models loaded. Please load a model."), FatalServerError),
        (408, b"", UnavailableError),
        (500, openai("boom"), UnavailableError),
        (502, b"<html>502 Bad Gateway</html>", UnavailableError),
        (500, b'{"error": "llm busy - no slots available"}', OverloadedError),
        (503, b'{"error": "server busy, please try again"}', OverloadedError),
        (503, b"", OverloadedError),
        (429, openai("Rate limit reached"), OverloadedError),
        # The slots share a cache: another moment, another outcome.
        (500, openai("Context size has been exceeded.", type="server_error"), UnavailableError),
    ],
)  # fmt: skip
def test_status_and_body_decide_the_class(
    status: int, body: bytes, kind: type[ServerError]
) -> None:
    assert type(failure(status, body)) is kind


@pytest.mark.parametrize(
    ("message", "tokens", "context"),
    [
        ("request (4390 tokens) exceeds the available context size (4096 tokens)",
         4390, 4096),
        ("This model's maximum context length is 16384 tokens. However, your messages resulted in "
         "28491 tokens. Please reduce the length of the messages.", 28491, 16384),
        ("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
         "(4900 in the messages, 100 in the completion).", 4900, 4096),
        ("This model's maximum context length is 4096 tokens. However, you requested 100 output "
         "tokens and your prompt contains at least 3997 input tokens, for a total of at least "
         "4097 tokens.", 3997, 4096),
        ("'max_tokens' or 'max_completion_tokens' is too large: 100. This model's maximum context "
         "length is 4096 tokens and your request has 4090 input tokens (100 > 4096 - 4090).",
         4090, 4096),
        ("You passed 4097 input tokens and requested 10 output tokens. However, the model's "
         "context length is only 4096 tokens.", 4097, 4096),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
         5000, 4096),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).",
         5000, 4096),
        ("Requested token count exceeds the model's maximum context length of 4096 tokens. You "
         "requested a total of 5000 tokens: 4900 tokens from the input messages and 100 tokens for "
         "the completion.", 4900, 4096),
        ("Trying to keep the first 5000 tokens when context the overflows. However, the model is "
         "loaded with context length of only 4096 tokens, which is not enough.", 5000, 4096),
        ("the input length exceeds the context length", None, None),
        ("maximum context length exceeded", None, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("shape", ["object", "text", "flat"])
def test_an_overflow_is_known_by_its_message(
    message: str, tokens: int | None, context: int | None, status: int, shape: str
) -> None:
    shapes: dict[str, object] = {
        "object": {"error": {"message": message, "type": "invalid_request_error"}},
        "text": {"error": message},
        "flat": {"object": "error", "message": message, "type": "BadRequestError", "code": 400},
    }
    error = failure(status, orjson.dumps(shapes[shape]))
    assert isinstance(error, ContextOverflowError)
    assert (error.prompt_tokens, error.context) == (tokens, context)
    assert not error.retryable


@pytest.mark.parametrize("status", [400, 500])
def test_an_overflow_is_known_by_its_type_and_carries_its_numbers(status: int) -> None:
    body = openai("no", type="exceed_context_size_error", n_prompt_tokens=4390, n_ctx=4096)
    error = failure(status, body)
    assert isinstance(error, ContextOverflowError)
    assert (error.prompt_tokens, error.context) == (4390, 4096)
    assert isinstance(failure(400, openai("no", code="context_length_exceeded")), type(error))


@pytest.mark.parametrize(
    ("message", "loading"),
    [
        ("Loading model", True),
        ("unexpected server status: llm server loading model", True),
        ("The model is still loading", True),
        ("llama runner process has terminated: error loading model", False),
        ("failed loading model", False),
    ],
)
def test_loading_is_waited_for_unless_it_failed(message: str, loading: bool) -> None:
    error = failure(503, openai(message))
    assert isinstance(error, UnavailableError)
    assert error.loading is loading


def test_the_wait_that_was_asked_for_is_kept() -> None:
    error = failure(429, b"", retry_after=7.0)
    assert isinstance(error, OverloadedError)
    assert error.retry_after == 7.0


def test_a_refused_key_is_not_repeated() -> None:
    assert "sk-1234" not in str(failure(401, openai("Incorrect API key provided: sk-1234")))


@given(st.integers(400, 599), BODIES)
def test_any_failure_is_one_printable_line(status: int, body: bytes) -> None:
    error = failure(status, body)
    assert str(error).isprintable()
    assert len(str(error)) < 2500
