"""The delta: one window for what changed, the earlier order for all else."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.strategies.base import Strategy
from batchrank.strategies.delta import building_on, delta
from batchrank.strategies.orders import forward
from batchrank.strategies.segmented import segmented
from batchrank.values import Lineage
from tests.strategies.driving import docids, drove, noisy, perfect, shuffled, useless

WINDOW = 20


def full(window_size: int = WINDOW) -> Strategy:
    """What the job does with any list."""
    return segmented(window_size, None, 10, [forward])


def test_new_documents_meet_the_earlier_best_in_one_window() -> None:
    truth = shuffled(100, seed=3)
    tonight = docids(100)
    new = set(tonight[7::20])
    earlier = tuple(docid for docid in truth if docid not in new)

    ranking, rounds = drove(delta(full(), WINDOW, earlier), tonight, perfect(truth))

    ((window,),) = rounds
    assert set(window.shown) == {*new, *earlier[: WINDOW - len(new)]}
    assert window.shown == tuple(docid for docid in tonight if docid in set(window.shown))
    assert ranking[:10] == truth[:10]
    assert ranking[WINDOW:] == earlier[WINDOW - len(new) :]


def test_an_unusable_answer_leaves_the_earlier_order_and_the_new_where_they_were_found() -> None:
    earlier = tuple(docid for docid in shuffled(100, seed=3) if docid not in ("d2", "d60"))

    ranking, _ = drove(delta(full(), WINDOW, earlier), docids(100), useless)

    assert ranking == (*earlier[:2], "d2", *earlier[2:18], "d60", *earlier[18:])


def test_nothing_new_takes_no_window() -> None:
    earlier = docids(60)[::-1]

    assert drove(delta(full(), WINDOW, earlier), docids(60), useless) == (earlier, [])


def test_more_than_half_a_window_of_new_documents_takes_more_windows() -> None:
    tonight = docids(100)
    earlier = tonight[30:]

    _, rounds = drove(delta(full(), WINDOW, earlier), tonight, perfect(tonight))

    assert [len(windows) for windows in rounds] == [2, 1]
    asked = {docid for windows in rounds for window in windows for docid in window.shown}
    assert asked == {*tonight[:30], *earlier[:10]}


@settings(deadline=None)
@given(st.integers(2, 40), st.integers(0, 120), st.integers(0, 99), st.data())
def test_any_answers_give_a_permutation(
    window_size: int, count: int, seed: int, data: st.DataObject
) -> None:
    tonight = docids(count)
    earlier = shuffled(count, seed)[: data.draw(st.integers(0, count), "known")]

    ranking, _ = drove(delta(full(window_size), window_size, earlier), tonight, noisy(seed))

    assert sorted(ranking) == sorted(tonight)


def test_only_what_builds_on_an_earlier_ranking_is_a_delta() -> None:
    strategy = full()
    tonight = docids(3)

    assert building_on(None, strategy, WINDOW, tonight) is strategy
    assert building_on(Lineage(0.0, 0, 0, (), b""), strategy, WINDOW, tonight) is strategy
    again = building_on(Lineage(0.0, 1, 4, (2, 0, 1), b""), strategy, WINDOW, tonight)
    assert drove(again, tonight, useless) == (("d2", "d0", "d1"), [])
