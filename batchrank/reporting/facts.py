"""What a report tells, before it is drawn: frozen values, bounded whatever the size of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from batchrank.measuring.comparison import Change, Evaluation
from batchrank.measuring.cost import Worth
from batchrank.measuring.nights import Spending
from batchrank.results.causes import Cause
from batchrank.store.queries import Coverage
from batchrank.store.records import Run, Totals
from batchrank.values import QueryStatus, Status

TOP = 10
"""Documents of a list that are shown and compared."""
BANDS = ((1, 10), (11, 20), (21, 50), (51, 100), (101, None))
"""First-stage ranks, first and last, by which the documents of the top are counted."""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long answered calls took, in seconds; `counts` of equal bins of `width` from 0.

    The last bin holds what took longer too.
    """

    calls: int
    median: float
    p90: float
    p99: float
    longest: float
    width: float
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slots:
    """Means over steps of `step` seconds, from `began` seconds after the night's beginning."""

    began: float
    step: float
    in_flight: tuple[float, ...]
    capacity: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Movement:
    """How far documents moved in the queries that a model ranked.

    `origins` counts the documents of the top by BANDS of first-stage ranks, `fresh` the queries by
    how many documents of the top (0 to 10) were not in the first stage's. `tau` is the mean of
    Kendall's tau between the two orders, None where nothing tells.
    """

    queries: int
    unchanged: int
    new_first: int
    tau: float | None
    origins: tuple[int, ...]
    fresh: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Winners:
    """The share of winners by equal parts of the prompt, front first, in a sample of windows."""

    windows: int
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A document in a list: `was` is its first-stage rank, `grade` its judgement if it has one."""

    docid: str
    was: int | None = None
    grade: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A window as it was shown and answered; `said` is the raw answer or what came instead.

    `is_gone`: how it ended is not known any more.
    """

    number: int
    round: int
    status: Status
    notes: tuple[str, ...]
    shown: tuple[str, ...]
    named: tuple[str, ...]
    said: str
    is_gone: bool


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """A query worth a look, and why.

    `lists` are the best documents by the name of the list. `before` and `after` are values of the
    first measure. `windows_left` were asked too and are not shown.
    """

    qid: str
    text: str
    line: int
    status: QueryStatus
    why: tuple[str, ...]
    lists: Mapping[str, tuple[Listed, ...]]
    before: float | None
    after: float | None
    fresh: int
    tau: float | None
    error: str | None
    windows: tuple[Asked, ...]
    windows_left: int

    @property
    def change(self) -> float | None:
        """What it gained by the first measure."""
        return None if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class Failed:
    """A line of the input that has no ranking of its own."""

    line: int
    qid: str
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Against:
    """This run beside another: means over `queries` that both have; `changes` by `judged` of them.

    `is_sample` says that these are some of the queries only.
    """

    name: str
    queries: int
    is_sample: bool
    only_here: int
    only_there: int
    overlap: float
    tau: float | None
    rbo: float
    same_top: int
    judged: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a report tells. `price` is None where no cost was given or the run did not end.

    `taken_over_by` is the run that went on from this one and shows what it ranked.
    """

    version: str
    store: str
    run: Run
    totals: Totals
    coverage: Coverage
    taken_over_by: int | None
    spending: Spending
    price: Worth | None
    latency: Latency | None
    slots: tuple[Slots, ...]
    movement: Movement
    winners: Winners | None
    fallbacks: tuple[Cause, ...]
    failures: tuple[Cause, ...]
    failed: tuple[Failed, ...]
    queries: tuple[QueryFacts, ...]
    evaluation: Evaluation | None
    against: Against | None
    settings: str
    command: str
