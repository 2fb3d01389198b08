"""Top-down partitioning: what is compared with the pivot, and when it ends."""

from __future__ import annotations

from batchrank.strategies.topdown import topdown
from tests.strategies.driving import docids, drove, perfect


def test_a_right_first_window_ends_after_one_look_at_the_rest() -> None:
    ranking, rounds = drove(topdown(20, 10), docids(100), perfect(docids(100)))

    assert ranking == docids(100)
    # 80 others in windows of 19 and the pivot.
    assert [len(windows) for windows in rounds] == [1, 5]
    assert all("d9" in window.shown for window in rounds[1])


def test_the_pivot_is_believed_best_and_shown_in_the_middle() -> None:
    _, (_, (first, _)) = drove(topdown(5, 2), docids(11), perfect(docids(11)))

    assert first.prior == ("d1", "d5", "d6", "d7", "d8")
    assert first.shown == ("d5", "d6", "d1", "d7", "d8")


def test_only_what_beats_the_pivot_goes_on() -> None:
    truth = ("d4", "d6", *docids(4), "d5")

    ranking, rounds = drove(topdown(4, 2), docids(7), perfect(truth))

    assert ranking[:2] == ("d4", "d6")
    # The pivot d1 loses to d4 and d6; with d0 they fit one window.
    assert [window.prior for window in rounds[-1]] == [("d0", "d4", "d6")]
    assert ranking == ("d4", "d6", "d0", "d1", "d2", "d3", "d5")
