"""A running job at one moment: the one document that every live view of it is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from batchrank.serving.stats import LATENCY_BOUNDS, EndpointState
from batchrank.values import QueryStatus, Status, Tally

State = Literal["starting", "ranking", "stopping", "writing", "publishing", "reporting", "ended"]
STEPS: Mapping[str, State] = {"publish": "publishing", "report": "reporting"}
"""What a night is at in each step after its run, by the key of the job spec that asks for it."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What was done a second, over the last minute."""

    queries: float = 0.0
    calls: float = 0.0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0


@dataclass(frozen=True, slots=True)
class WindowCount:
    """Windows that ended as `status`, read from an answer of `source`.

    `source` is a server's URL, also of one that gave none; `store` where the answer was there
    already, `none` where no server was asked.
    """

    status: Status
    source: str
    count: int


@dataclass(frozen=True, slots=True)
class GateState:
    """A quality gate, by what this run has done so far: the verdict at the end counts all lines.

    `value` and `limit` are shares, None where the gate has none or nothing is known yet. `passed`
    is None while nothing is known.
    """

    name: str
    value: float | None
    limit: float | None
    passed: bool | None


@dataclass(frozen=True, slots=True)
class Move:
    """A document of a ranking's top, and its rank in the first stage."""

    docid: str
    was: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A query that was ranked just now: `at` in seconds since the epoch, `top` the best first.

    `risen` of the top were not among as many of the first stage's best. `query` may be cut.
    """

    qid: str
    query: str
    status: QueryStatus
    at: float
    seconds: float
    windows: int
    bad_windows: int
    candidates: int
    risen: int
    top: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A step after a run that has ended: what it did, or why it failed.

    `name` is the key of the job spec that asks for it, `exit_code` 0 where it did what it is for,
    `at` when it ended, in seconds since the epoch.
    """

    name: str
    exit_code: int
    told: str
    at: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one moment. Shares are from 0 to 1, durations seconds, times seconds of the epoch.

    `waits` says why nothing is sent, `quiet_until` until when where these are quiet hours. Of the
    `seconds` so far, `quiet_seconds` were such, and for `held_back_seconds` others waited.
    `exit_code` and `reasons` are there once it has ended with all the `steps` after it, of which
    `step` says what the one that is on is at. `known` lines were finished before it,
    `finished` were ranked by it, `open` are begun or wait. `share_done` is the part of the input
    that is finished and `share_by_deadline` the part that will be, both None where nothing tells.
    `queries` and `windows` count what is in finished queries, `window_counts` all windows. `trace`
    are calls a second since the beginning, in steps of `trace_step` seconds. `recent` are the last
    queries, the latest first.
    """

    version: str
    process: int
    written: float
    store: str
    input: str
    output: str
    started: float
    seconds: float
    quiet_seconds: float = 0.0
    held_back_seconds: float = 0.0
    state: State = "starting"
    waits: str | None = None
    quiet_until: float | None = None
    exit_code: int | None = None
    reasons: tuple[str, ...] = ()
    step: str = ""
    steps: tuple[Step, ...] = ()
    run: int | None = None
    model: str | None = None
    deadline: float | None = None
    seconds_left: float | None = None
    share_done: float | None = None
    share_by_deadline: float | None = None
    told: str = ""
    lines: int = 0
    known: int = 0
    finished: int = 0
    open: int = 0
    queries: Mapping[str, int] = field(default_factory=dict)
    windows: Tally = field(default_factory=Tally)
    window_counts: tuple[WindowCount, ...] = ()
    calls: int = 0
    calls_saved: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    rates: Rates = field(default_factory=Rates)
    trace: tuple[float, ...] = ()
    trace_step: float = 0.0
    in_flight: int = 0
    capacity: int = 0
    store_bytes: int = 0
    latency_bounds: tuple[float, ...] = LATENCY_BOUNDS
    endpoints: tuple[EndpointState, ...] = ()
    gates: tuple[GateState, ...] = ()
    recent: tuple[Finished, ...] = ()

    @property
    def activity(self) -> str:
        """What it is at, or waits for."""
        return self.waits or (f"{self.state}, {self.step}" if self.step else self.state)

    @property
    def fallback_rate(self) -> float | None:
        """The share of windows that brought no usable ranking, as the gate counts them."""
        return self.windows.bad / self.windows.windows if self.windows.windows else None

    @property
    def latencies(self) -> tuple[int, ...]:
        """Calls by how long they took, of all servers: see `EndpointState`."""
        counts = zip(*(one.latencies for one in self.endpoints), strict=True)
        return tuple(map(sum, counts)) or (0,) * (len(self.latency_bounds) + 1)
