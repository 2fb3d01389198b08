"""The delta: windows for what is new, the earlier order for all else."""

from __future__ import annotations

from batchrank.strategies.incremental import Merging, building_on, delta
from batchrank.strategies.orders import forward
from batchrank.strategies.segmented import segmented
from batchrank.values import Lineage, Ranking
from tests.strategies.driving import docids, drove, perfect, shuffled, useless


def merging(window_size: int = 20, top: int = 10) -> Merging:
    """As the default job merges."""
    return Merging(window_size, top, lambda named: segmented(window_size, None, named, [forward]))


def without(ranking: Ranking, *new: str) -> Ranking:
    """An earlier order that lacked these."""
    return tuple(docid for docid in ranking if docid not in new)


def test_new_documents_meet_the_earlier_best_in_one_window() -> None:
    truth = shuffled(100, seed=3)
    tonight = docids(100)
    new = set(tonight[7::20])
    earlier = without(truth, *new)

    ranking, rounds = drove(delta(merging(), earlier), tonight, perfect(truth))

    ((window,),) = rounds
    assert set(window.shown) == {*new, *earlier[: 20 - len(new)]}
    assert window.shown == tuple(docid for docid in tonight if docid in set(window.shown))
    assert window.prior == (*earlier[: 20 - len(new)], *(d for d in tonight if d in new))
    assert window.wants == 10
    assert ranking[:10] == truth[:10]


def test_what_loses_stands_where_it_was_found_but_below_what_it_lost_to() -> None:
    truth = docids(100)
    earlier = without(truth, "d20", "d60")
    # Tonight one that loses was found first, the other one where it belongs.
    tonight = ("d20", *earlier[:60], "d60", *earlier[60:])

    ranking, _ = drove(delta(merging(4, 3), earlier), tonight, perfect(truth))

    assert ranking.index("d20") == 3
    assert ranking.index("d60") == tonight.index("d60")
    assert without(ranking, "d20", "d60") == earlier


def test_what_beats_all_of_a_window_goes_on_to_the_next_better() -> None:
    truth = docids(30)
    earlier = without(truth, "d1")

    ranking, rounds = drove(delta(merging(4), earlier), truth, perfect(truth))

    assert [set(window.shown) - {"d1"} for (window,) in rounds] == [
        set(earlier[7:10]),
        set(earlier[4:7]),
        set(earlier[1:4]),
        {"d0"},
    ]
    assert [window.wants for (window,) in rounds] == [3, 4, 4, 2]
    assert ranking == truth


def test_more_than_half_a_window_of_new_documents_takes_more_windows() -> None:
    tonight = docids(100)
    earlier = tonight[30:]

    ranking, rounds = drove(delta(merging(), earlier), tonight, perfect(tonight))

    assert [len(window.shown) for (window,) in rounds] == [20] * 3
    assert ranking[:10] == tonight[:10]


def test_without_an_answer_the_earlier_order_stands_and_what_is_new_last() -> None:
    earlier = without(shuffled(100, seed=3), "d2", "d60")

    ranking, _ = drove(delta(merging(), earlier), docids(100), useless)

    assert ranking == (*earlier, "d2", "d60")


def test_nothing_new_takes_no_window() -> None:
    earlier = docids(60)[::-1]

    assert drove(delta(merging(), earlier), docids(60), useless) == (earlier, [])


def test_only_what_builds_on_an_earlier_ranking_is_a_delta() -> None:
    strategy = segmented(20, None, 10, [forward])
    tonight = docids(3)

    assert building_on(None, strategy, merging(), tonight) is strategy
    assert building_on(Lineage(0.0, 0, 0, (), b""), strategy, merging(), tonight) is strategy
    again = building_on(Lineage(0.0, 1, 4, (2, 0, 1), b""), strategy, merging(), tonight)
    assert drove(again, tonight, useless) == (("d2", "d0", "d1"), [])
