"""Tournaments: what they cost, how they are dealt and what points are worth."""

from __future__ import annotations

import pytest

from batchrank.strategies.tournament import tournament
from tests.strategies.driving import docids, drove, perfect, useless


@pytest.mark.parametrize(
    ("winners", "windows"), [(None, [10, 2]), (10, [10, 6, 4, 2])], ids=["filled", "halves"]
)
def test_tournaments_run_in_step(winners: int | None, windows: list[int]) -> None:
    _, rounds = drove(tournament(20, 2, winners, 10, seed=0), docids(100), useless)

    assert [len(groups) for groups in rounds] == windows


def test_each_group_has_one_of_all_neighbours_whatever_the_seed() -> None:
    dealt = []
    for seed in (0, 1):
        _, (groups, _) = drove(tournament(4, 1, None, 4, seed), docids(8), useless)
        dealt.append({group.shown for group in groups})
        for group in groups:
            assert [int(docid[1:]) // 2 for docid in group.shown] == [0, 1, 2, 3]

    assert dealt[0] != dealt[1]


def test_the_final_is_shown_in_first_stage_order() -> None:
    _, (_, (final,)) = drove(tournament(4, 1, None, 4, 0), docids(8), perfect(docids(8)[::-1]))

    assert final.shown == ("d4", "d5", "d6", "d7")
    assert final.prior != final.shown


def test_the_field_that_was_survived_orders_those_who_lost() -> None:
    truth = docids(40)[::-1]

    ranking, rounds = drove(tournament(10, 1, 5, 10, 0), docids(40), perfect(truth))

    # 40 → 20 → 10: the finalists by place, then who lost the second round, then the first.
    reached = [{docid for window in windows for docid in window.prior} for windows in rounds]
    assert set(ranking[:10]) == reached[2]
    assert set(ranking[:20]) == reached[1]
