"""The best of sets: how many windows, which of them at the same time."""

from __future__ import annotations

import pytest

from batchrank.strategies.setwise import Method, setwise
from tests.strategies.driving import docids, drove, perfect, shuffled


@pytest.mark.parametrize("method", ["heap", "insertion"])
def test_every_window_wants_one_document(method: Method) -> None:
    _, rounds = drove(setwise(4, 5, method), docids(40), perfect(shuffled(40, 1)))

    assert {window.wants for windows in rounds for window in windows} == {1}
    assert max(len(window.prior) for windows in rounds for window in windows) == 4


def test_nodes_of_one_depth_of_the_heap_are_settled_at_the_same_time() -> None:
    _, rounds = drove(setwise(4, 1, "heap"), docids(40), perfect(docids(40)))

    # 1 + 3 + 9 + 27 documents; nothing sinks where the first stage is right.
    assert [len(windows) for windows in rounds] == [9, 3, 1]


def test_a_heap_takes_few_windows_for_each_of_the_best() -> None:
    _, rounds = drove(setwise(10, 10, "heap"), docids(100), perfect(shuffled(100, 2)))

    building, sinking = 11 + 2, 9 * 2
    assert sum(map(len, rounds)) <= building + sinking


def test_insertion_asks_little_where_the_first_stage_is_right() -> None:
    ranking, rounds = drove(setwise(10, 2, "insertion"), docids(92), perfect(docids(92)))

    assert ranking == docids(92)
    # One pair sorts the first two, and all ten sets of nine others fail against the second.
    assert [len(windows) for windows in rounds] == [1, 10]


@pytest.mark.parametrize("method", ["heap", "insertion"])
def test_what_is_not_among_the_best_keeps_its_order(method: Method) -> None:
    ranking, _ = drove(setwise(4, 2, method), docids(9), perfect(docids(9)[::-1]))

    assert ranking == ("d8", "d7", *docids(7))
