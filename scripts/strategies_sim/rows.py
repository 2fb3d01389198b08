"""What is measured: settings of the judge, and strategies with the readings that fit them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from batchrank.strategies.base import Plan, Strategy
from batchrank.strategies.cascade import cascade
from batchrank.strategies.orders import parse_orders
from batchrank.strategies.pairwise import pairwise
from batchrank.strategies.passes import in_passes
from batchrank.strategies.pointwise import pointwise
from batchrank.strategies.segmented import segmented
from batchrank.strategies.setwise import setwise
from batchrank.strategies.single import single
from batchrank.strategies.sliding import sliding
from batchrank.strategies.topdown import topdown
from batchrank.strategies.tournament import tournament
from batchrank.values import Ranking
from scripts.strategies_sim.judge import Setting
from scripts.strategies_sim.topics import CUTOFF
from scripts.strategies_sim.variants import contiguous, forgetful, mixed, shown_as_believed

Reading = Literal["full", "winners", "logprobs", "scores"]

SETTINGS = (
    Setting("good", spread=0.87, flutter=0.3),
    Setting("typical", spread=1.38, flutter=0.1, bias="first", bias_strength=3.2),
    Setting("weak", spread=1.42, flutter=0.5),
)
"""Set so that sliding 20/10 gets about 0.74, 0.67 and 0.60.

`typical` is fitted to the recorded windows of a fine-tuned 7B reranker: nDCG@10 0.6675, 67% of all
pairs of a window left in the order of the prompt, 87% of the pairs that two windows share ordered
alike. Only strong position bias gives such figures; it also makes mixing the first stage into the
final order as harmful as it is on that run.
"""

LISTWISE: tuple[Reading, ...] = ("full", "winners", "logprobs")
LONG: tuple[Reading, ...] = ("full", "winners")
"""Windows of more documents than there are letters or log-probabilities."""
WINNERS: tuple[Reading, ...] = ("winners",)
"""Rows that only show what a choice is worth."""
BEST_OF: tuple[Reading, ...] = ("winners", "logprobs")
"""Windows that want one document."""

BASELINE = "sliding 20/10"
DEFAULT = "segmented 20, 4 winners"


@dataclass(frozen=True, slots=True)
class Row:
    """A strategy over the first `depth` candidates; the rest keep their order below."""

    name: str
    strategy: Strategy
    readings: tuple[Reading, ...] = LISTWISE
    depth: int = 100


def rows() -> tuple[Row, ...]:
    """All rows of the table, the first stage first."""

    def merged(merge: str = "forward", winners: int | None = None, window: int = 20) -> Strategy:
        return segmented(window, winners, CUTOFF, parse_orders(merge))

    def until_agreed(merge: str) -> Strategy:
        return segmented(20, None, CUTOFF, parse_orders(merge), agree_top=CUTOFF)

    def tournaments(window: int, times: int, winners: int | None = None) -> Strategy:
        return tournament(window, times, winners, CUTOFF, seed=0)

    return (
        Row("first stage", _untouched, readings=("full",)),
        Row(BASELINE, sliding(20, 10)),
        Row("sliding 20/5", sliding(20, 5)),
        Row(DEFAULT, merged()),
        Row("· window 25, 6 winners", merged(window=25, winners=6), LONG),
        Row("· depth 80, 5 winners", merged(winners=5), depth=80),
        Row("· depth 60, 6 winners", merged(winners=6), depth=60),
        Row("· merge forward, shuffle", merged("forward,shuffle:1")),
        Row("· merge shuffled twice", merged("shuffle:1,shuffle:2")),
        Row("· merge forward, reverse", merged("forward,reverse")),
        Row("· merge forward, two shuffles", merged("forward,shuffle:1,shuffle:2")),
        Row("· merge adaptive, at most 2", until_agreed("forward,shuffle:1")),
        Row("· merge adaptive, at most 3", until_agreed("forward,shuffle:1,shuffle:2")),
        Row("· passes forward, reverse", in_passes(merged(), parse_orders("forward,reverse"))),
        Row("· contiguous", contiguous(merged(), 5), WINNERS),
        Row("· contiguous, 1 winner", contiguous(merged(winners=1), 5), WINNERS),
        Row("· merge shown as believed", shown_as_believed(merged()), WINNERS),
        Row("· segments forgotten", forgetful(merged()), WINNERS),
        Row("· fixed mix 0.25, 0.05", mixed(merged(), 0.25, 0.05), WINNERS),
        Row("topdown 20, k 10", topdown(20, CUTOFF)),
        Row("tournament 20, 3 times", tournaments(20, 3)),
        Row("· half of a group goes on", tournaments(20, 3, winners=10)),
        Row("tournament 25, 3 times", tournaments(25, 3), LONG),
        Row("tournament 25, 5 times", tournaments(25, 5), LONG),
        Row("single 100", single(None, CUTOFF), LONG),
        Row("single 20, depth 20", single(None, CUTOFF), depth=20),
        Row("setwise 10, heap", setwise(10, CUTOFF, "heap"), BEST_OF),
        Row("setwise 10, insertion", setwise(10, CUTOFF, "insertion"), BEST_OF),
        Row("pairwise, depth 30", pairwise(CUTOFF), BEST_OF, depth=30),
        Row("pointwise", pointwise(1), ("scores",)),
        Row("pointwise to 20, single", cascade([(pointwise(1), None), (single(None, 10), 20)])),
    )


def _untouched(first_stage: Ranking) -> Plan:
    yield from ()
    return first_stage
