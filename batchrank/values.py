"""The values that flow through batchrank: frozen dataclasses with no behaviour but their shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from batchrank.calls import Usage

InputFormat = Literal["jsonl", "json", "csv", "tsv", "parquet", "trec", "beir"]
"""What queries and candidates are read from."""
OutputFormat = Literal[
    "jsonl",
    "json",
    "trec",
    "rankllm",
    "rankllm-json",
    "rankgpt",
    "csv",
    "tsv",
    "parquet",
    "parquet-nested",
]
"""What rankings are written as."""

Ranking = tuple[str, ...]
"""docids, best first."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index`, from 0, of the `count` that an input is split into; written `index/count`."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for."""

    qid: str
    text: str


# Not frozen, though nobody changes one: a query has hundreds, and they would take thrice as long.
@dataclass(slots=True, unsafe_hash=True)
class Document:
    """One candidate: `score` is the first stage's, carried along and never sorted by.

    `metadata` is what filters look at, `embedding` a vector by which documents are alike; no prompt
    shows them.
    """

    docid: str
    text: str
    title: str | None = None
    score: float | None = None
    metadata: Mapping[str, str | float] = field(default_factory=dict, hash=False)
    embedding: Sequence[float] = field(default=(), hash=False)


@dataclass(frozen=True, slots=True)
class Request:
    """One input line: a query and its candidates in first-stage order, docids unique.

    Where a night may be too short, those with a larger `weight` go first.
    """

    query: Query
    candidates: tuple[Document, ...]
    weight: float = 1.0

    @property
    def docids(self) -> Ranking:
        """The candidates' docids, in first-stage order."""
        return tuple([document.docid for document in self.candidates])


@dataclass(frozen=True, slots=True)
class Window:
    """Documents that one call puts in order.

    `prior` is what is believed so far and what stands where the answer is silent; `shown` holds
    the same docids in the order of the prompt; `wants` says how many of the best must be named.
    `stage` is the stage of a cascade that asks, from 0.
    """

    prior: Ranking
    shown: Ranking
    wants: int
    stage: int = 0


class Status(StrEnum):
    """How a window ended."""

    OK = "ok"
    """Exactly what was wanted."""
    REPAIRED = "repaired"
    """Usable after a repair: missing, repeated, out of range, other format."""
    FALLBACK = "fallback"
    """An answer came and is unusable: the prior order stands."""
    ERROR = "error"
    """No answer came: the prior order stands."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """A window's outcome: `order` holds all its docids; the first `named` are the model's own.

    `scores`, where the reading gives any, are aligned with those first `named`.
    """

    order: Ranking
    named: int
    status: Status
    notes: tuple[str, ...] = ()
    scores: tuple[float, ...] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether an answer put the documents in order, repaired or not."""
        return self.status in (Status.OK, Status.REPAIRED)

    def is_thin(self, wanted: int) -> bool:
        """Whether the model named less than half of what was wanted, though it is usable."""
        return self.is_usable and self.named * 2 < wanted

    def asked_again(self) -> Permutation:
        """The outcome where this was read from the answer to a window's second request."""
        if self.status is Status.FALLBACK:
            return self
        return replace(self, status=Status.REPAIRED, notes=(*self.notes, "asked-again"))


class QueryStatus(StrEnum):
    """How a query ended."""

    OK = "ok"
    """Every window was answered as wanted."""
    REPAIRED = "repaired"
    """At least one answer had to be repaired, none was lost."""
    DEGRADED = "degraded"
    """A window fell back to its prior order or had no answer."""
    UNRANKED = "unranked"
    """There was nothing to ask: one candidate, none, or only empty texts."""
    FAILED = "failed"
    """The line can't be used, or no window had an answer."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Windows counted by how they ended, and two marks of answers that are worth little.

    `thin` answers named fewer than half of what was wanted; `unmoved` ones repeat the order of the
    prompt. Both are counted among `ok` and `repaired` too.
    """

    ok: int = 0
    repaired: int = 0
    fallback: int = 0
    error: int = 0
    thin: int = 0
    unmoved: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.ok + other.ok,
            self.repaired + other.repaired,
            self.fallback + other.fallback,
            self.error + other.error,
            self.thin + other.thin,
            self.unmoved + other.unmoved,
        )

    @property
    def counts(self) -> tuple[int, int, int, int, int, int]:
        """The numbers in the order of the fields, a tenth of the time that `astuple` takes."""
        return self.ok, self.repaired, self.fallback, self.error, self.thin, self.unmoved

    @property
    def windows(self) -> int:
        """All windows."""
        return self.ok + self.repaired + self.fallback + self.error

    @property
    def bad(self) -> int:
        """Windows that a quality gate counts: no answer, an unusable one, or a thin one."""
        return self.fallback + self.error + self.thin


@dataclass(frozen=True, slots=True)
class Lineage:
    """How a ranking stands to earlier ones of its query, in a job that builds on those.

    `full_at` is when the query was last ranked in full, in seconds since the epoch, and `steps` how
    many rankings have built on one another since. `run` is the run whose ranking this one builds
    on, 0 where it is itself a full one; `earlier` are the documents taken over from there, in the
    order they had, as positions among the candidates. `digests` has 4 bytes for each candidate that
    was reranked.
    """

    full_at: float
    steps: int
    run: int
    earlier: tuple[int, ...]
    digests: bytes


@dataclass(frozen=True, slots=True)
class RankedQuery:
    """A query's outcome, as it is stored: enough to write its row and to replay its windows.

    `docids` and `scores` are the candidates in first-stage order, `order` the ranks as positions in
    `docids`. `answers` are the stored answers' numbers in the order in which the strategy's windows
    ask for them, 0 where none came; `faults` say why, one for each 0; `again` are the positions in
    `answers`, rising, of those that a second request brought. `reduced` queries were ranked without
    the optional passes of their job, for lack of time. `lineage` is there in jobs whose rankings
    may build on earlier ones; its positions are those in `kept`. `filtered` are the positions in
    `docids` that no model saw, rising, each with the reason.
    """

    qid: str
    query: str
    docids: Ranking
    scores: tuple[float | None, ...]
    order: tuple[int, ...]
    status: QueryStatus
    tally: Tally = Tally()
    answers: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    error_kind: str | None = None
    error: str | None = None
    reduced: bool = False
    lineage: Lineage | None = None
    filtered: tuple[tuple[int, str], ...] = ()
    again: tuple[int, ...] = ()

    @property
    def ranking(self) -> Ranking:
        """All docids, best first."""
        return tuple(self.docids[place] for place in self.order)

    @property
    def kept(self) -> Ranking:
        """The candidates that no filter removed, in first-stage order."""
        gone = dict(self.filtered)
        return tuple(docid for place, docid in enumerate(self.docids) if place not in gone)

    @property
    def is_incremental(self) -> bool:
        """Whether it builds on an earlier ranking."""
        return self.lineage is not None and self.lineage.run > 0
