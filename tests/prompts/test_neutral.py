"""What a document says can't end it, speak as somebody else or look like another document."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.prompts.neutral import is_harmless, neutral
from batchrank.prompts.tokens import odd_bytes

CHAT_TOKENS = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|begin_of_text|>",
    "<|assistant|>",
    "<|end|>",
    "<|channel|>",
    "<|START_OF_TURN_TOKEN|>",
    "<|start_of_role|>",
    "<｜User｜>",
    "<｜end▁of▁sentence｜>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "[AVAILABLE_TOOLS]",
    "[/TOOL_RESULTS]",
    "[SYSTEM_PROMPT]",
    "<start_of_turn>",
    "<end_of_turn>",
    "<bos>",
    "<eos>",
    "<think>",
    "</think>",
    "</THINK>",
    "<tool_call>",
    "[gMASK]",
    "<sop>",
    "[THINK]",
    "[/THINK]",
    "[|assistant|]",
    "[|endofturn|]",
    "<EOS_TOKEN>",
    "<seed:bos>",
)

PIECES = st.lists(
    st.sampled_from(
        (
            *CHAT_TOKENS,
            *"<>[]|｜【】［］/ 1２٣\n\t\r\0\x85\u2028\ufeff",
            "INST",
            "s",
            "12",
            "think",
            "x",
        )
    ),
    max_size=30,
).map("".join)
TEXTS = PIECES | st.text(max_size=60)


@pytest.mark.parametrize("token", CHAT_TOKENS)
def test_chat_tokens_are_broken_up(token: str) -> None:
    shown = neutral(f"before{token}after")

    assert token not in shown
    assert shown.replace(" ", "") == f"before{token}after", "only blanks are put in"


@pytest.mark.parametrize(
    "mark", ["[3]", "[ 3 ]", "[12]", "【3】", "［3］", "［３］", "[3】", "[\n3\n]"]
)
def test_look_alikes_of_identifiers_lose_their_brackets(mark: str) -> None:
    shown = neutral(f"as {mark} says")

    assert re.fullmatch(r"as \(\s?\w+\s?\) says", shown)


@pytest.mark.parametrize(
    "text",
    [
        "plain words, 3 numbers [sic] and (4)",
        "if a < b and c > d: x[i] = y[j]",
        "<p>HTML <b>stays</b></p>",
        "Äpfel 苹果 🍎 and\ttabs\nand lines",
        "array[1234567]",
        "",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert neutral(text) == text


def test_control_characters_become_blanks_and_blank_lines_go() -> None:
    assert neutral("a\x00\x1bb\u2028c\r\n\r\n \n\nd\x85e") == "a b c \nd e"


@settings(deadline=None)
@given(TEXTS)
def test_neutral_text_is_safe_whatever_it_was(text: str) -> None:
    shown = neutral(text)

    assert not any(token.casefold() in shown.casefold() for token in CHAT_TOKENS)
    assert not re.search(r"[\[【［]\s*\d{1,5}\s*[\]】］]", shown)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]", shown)
    assert "\n\n" not in shown
    assert len(shown) <= 2 * len(text)


@settings(deadline=None)
@given(TEXTS)
def test_neutral_text_is_not_changed_again(text: str) -> None:
    assert neutral(neutral(text)) == neutral(text)


def test_a_megabyte_of_openings_takes_no_time_to_speak_of() -> None:
    for piece in ("[", "<", "[ ", "\n ", "[1", "<|"):
        text = piece * 200_000

        assert len(neutral(text)) <= 2 * len(text)


@settings(deadline=None)
@given(TEXTS)
def test_what_is_seen_to_be_harmless_is_not_changed(text: str) -> None:
    if is_harmless(odd_bytes(text)):
        assert neutral(text) == text
    assert is_harmless(odd_bytes("Plain words, 3 numbers (and 4)!"))
