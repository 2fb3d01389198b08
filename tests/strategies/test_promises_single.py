"""One window: over everything, or over what it holds."""

from __future__ import annotations

from batchrank.strategies.single import single
from tests.strategies.driving import docids, drove, perfect


def test_one_window_holds_all() -> None:
    truth = docids(300)[::-1]

    ranking, ((window,),) = drove(single(None, 300), docids(300), perfect(truth))

    assert ranking == truth
    assert window.wants == 300


def test_what_the_window_does_not_hold_keeps_its_order_below() -> None:
    ranking, ((window,),) = drove(single(3, 10), docids(5), perfect(docids(5)[::-1]))

    assert ranking == ("d2", "d1", "d0", "d3", "d4")
    assert window.wants == 3
