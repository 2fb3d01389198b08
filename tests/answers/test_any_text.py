"""Whatever a model writes, its answer becomes a permutation of the window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.answers import permutation, read
from batchrank.answers.forms import write
from batchrank.calls import Answer, Form
from batchrank.values import Status, Window
from tests.answers.reading import reading

_PIECES = st.sampled_from(
    [
        *(
            "[",
            "]",
            "{",
            "}",
            '"',
            "'",
            ":",
            ",",
            ">",
            "<",
            "-",
            ".",
            "|",
            "\n",
            " ",
            "(",
            ")",
            "\\",
        ),
        *(
            "0",
            "1",
            "2",
            "3",
            "12",
            "9/10",
            "0.5",
            "document ",
            "Rank ",
            "ranking",
            "not ",
            "best ",
        ),
        *(
            "<think>",
            "</think>",
            "<answer>",
            "<|im_end|>",
            "第",
            "三",
            "篇",
            "文档",
            "③",
            "…",
            "```",
        ),
    ]
)
_TEXTS = st.one_of(st.text(), st.lists(_PIECES, max_size=40).map("".join))
_FINISH = st.sampled_from(["stop", "length"])


@given(_TEXTS, _TEXTS, _FINISH, st.integers(1, 15), st.data())
def test_any_text_gives_a_permutation_of_the_window(
    text: str, reasoning: str, finish: str, documents: int, data: st.DataObject
) -> None:
    wanted = data.draw(st.integers(1, documents))
    docids = [f"d{number}" for number in range(documents)]
    window = Window(tuple(docids), tuple(data.draw(st.permutations(docids))), wanted)
    found = read(Answer(text, reasoning=reasoning, finish=finish), documents, wanted)
    assert len(set(found.named)) == len(found.named)
    assert all(1 <= number <= documents for number in found.named)
    assert bool(found.named) == (found.status is not Status.FALLBACK)
    assert bool(found.notes) == (found.status is not Status.OK)
    assert found.status is not Status.OK or len(found.named) == wanted
    placed = permutation(window, found)
    assert sorted(placed.order) == sorted(docids)
    assert placed.order[: placed.named] == tuple(window.shown[i - 1] for i in found.named)
    rest = placed.order[placed.named :]
    assert rest == tuple(docid for docid in window.prior if docid in rest)


@given(
    st.permutations(range(1, 13)),
    st.sampled_from(list(Form)),
    st.integers(0, 200),
    st.integers(0, 5),
    _PIECES,
    _FINISH,
)
def test_a_damaged_strict_answer_names_each_document_at_most_once(
    order: list[int], form: Form, place: int, removed: int, piece: str, finish: str
) -> None:
    text = write(form, tuple(order))
    found = reading(text[:place] + piece + text[place + removed :], 12, finish=finish)
    assert len(set(found.named)) == len(found.named)
    assert set(found.named) <= set(order)


@given(st.permutations(range(1, 13)), st.sampled_from(list(Form)), st.integers(0, 80))
def test_a_cut_strict_answer_names_the_best_in_order_or_nothing(
    order: list[int], form: Form, kept: int
) -> None:
    found = reading(write(form, tuple(order))[:kept], 12, finish="length")
    assert found.named == tuple(order[: len(found.named)])


_HUGE = {
    "digits": "9" * 1_000_000,
    "a long number in a list": "[" + "9" * 5_000 + ", 3]",
    "opening brackets": "[" * 1_000_000,
    "opening braces": "{" * 1_000_000,
    "nested objects": '{"a":' * 200_000,
    "opened strings": '{"' * 500_000,
    "escapes": '{"' + "\\" * 1_000_000,
    "opened lists": "[1," * 300_000,
    "ranges": "1-" * 500_000,
    "slashes": "1/" * 500_000,
    "dashes": "-" * 1_000_000,
    "thoughts": "<think>" * 100_000,
    "ended thoughts": "</think>" * 100_000,
    "channels": "<|channel|>" * 100_000,
    "boxes": "\\boxed{" * 100_000,
    "tags": "<a" * 500_000,
    "labels": "document " * 100_000,
    "numbers in prose": "1 w " * 250_000,
    "ligatures that grow eighteen times": "\ufdfa" * 1_000_000,
    "blanks in a list": "[1" + " " * 1_000_000 + "x",
}


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize("text", _HUGE.values(), ids=_HUGE.keys())
def test_an_absurd_answer_is_read_in_bounded_time(text: str, finish: str) -> None:
    # Anything but linear time would not come back from a million characters.
    found = reading(text, 100, 20, finish=finish)
    assert found.status in (Status.REPAIRED, Status.FALLBACK)


def test_a_huge_answer_is_read_up_to_a_limit_and_counted_as_cut() -> None:
    found = reading("[3] > [1] > [2]\n" + "and so on " * 100_000)
    assert found.named == (3, 1, 2)
    assert found.notes == ("format", "cut")


def test_a_number_too_long_for_an_integer_is_out_of_range() -> None:
    assert reading("[" + "9" * 5_000 + "] > [3] > [1]").named == (3, 1)
    assert reading('{"ranking": [' + "9" * 5_000 + ", 3, 1]}").named == (3, 1)
