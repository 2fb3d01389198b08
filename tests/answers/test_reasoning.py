"""Reasoning is never read as a ranking."""

from __future__ import annotations

import pytest

from batchrank.values import Status
from tests.answers.reading import reading


@pytest.mark.parametrize(
    "text",
    [
        "<think>[1] > [2] > [3]?</think>\n[3] > [1] > [2]",
        "<think>\n\n</think>\n\n3,1,2",
        "<think>[1]</think>\n<think>No, [2].</think>\n[3] > [1] > [2]",
        "The template opened it: [1] > [2] > [3]\n</think>\n[3] > [1] > [2]",
        "<think>I wrote <think> once more: [1] > [2]</think>[3] > [1] > [2]",
        "<THINKING>[1]</THINKING>[3] > [1] > [2]",
        "[THINK][1] > [2][/THINK][3] > [1] > [2]",
        "◁think▷[1]◁/think▷[3] > [1] > [2]",
        '<seed:think>[1]</seed:think>{"ranking": [3, 1, 2]}',
        "<|channel|>final<|message|>[3] > [1] > [2]",
        "analysisWe need [1].assistantfinal[3] > [1] > [2]",
    ],
)
def test_an_answer_after_reasoning_is_as_good_as_one_alone(text: str) -> None:
    found = reading(text)
    assert found.named == (3, 1, 2)
    assert found.status is Status.OK


def test_only_the_final_channel_is_the_answer() -> None:
    text = (
        "<|channel|>analysis<|message|>[1] has dates.<|end|><|start|>assistant"
        "<|channel|>final<|message|>[3] > [1] > [2]<|return|>"
    )
    assert reading(text).named == (3, 1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "<think>[3] > [1] > [2], hmm, wait",
        "<think>[3]</think><think>[3] > [1] > [2]",
        "<|channel|>analysis<|message|>[3] > [1] > [2]",
        "analysisThe order is [3] > [1] > [2]",
    ],
)
def test_unfinished_reasoning_is_a_fallback(text: str) -> None:
    found = reading(text, finish="length")
    assert found.status is Status.FALLBACK
    assert found.notes == ("unfinished-reasoning",)


def test_what_stands_before_unfinished_reasoning_is_the_answer() -> None:
    found = reading("[3] > [1] > [2]\n<think>Or [1] > [2] > [3]")
    assert found.named == (3, 1, 2)
    assert found.status is Status.REPAIRED


@pytest.mark.parametrize("reasoning", ["[3] > [1] > [2]", "3,1,2", ' {"ranking": [3, 1, 2]}\n'])
def test_a_strict_answer_that_a_server_put_in_the_reasoning_is_taken(reasoning: str) -> None:
    found = reading("", reasoning=reasoning)
    assert found.named == (3, 1, 2)
    assert found.status is Status.REPAIRED
    assert found.notes == ("in-reasoning",)


@pytest.mark.parametrize(
    ("reasoning", "finish", "reason"),
    [
        ("The order is [3] > [1] > [2]", "stop", "empty"),
        ("[3] > [1]", "stop", "empty"),
        ("3,1,1", "stop", "empty"),
        ("[3] > [1] > [2]", "length", "unfinished-reasoning"),
        ("", "length", "empty"),
    ],
)
def test_nothing_else_in_the_reasoning_is(reasoning: str, finish: str, reason: str) -> None:
    found = reading("", reasoning=reasoning, finish=finish)
    assert found.status is Status.FALLBACK
    assert found.notes == (reason,)


def test_reasoning_beside_an_answer_is_not_looked_at() -> None:
    assert reading("no idea", reasoning="[3] > [1] > [2]").notes == ("no-ranking",)
