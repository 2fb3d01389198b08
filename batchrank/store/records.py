"""What the store holds, as the rest of the program sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from batchrank.calls import Answer
from batchrank.values import QueryStatus, Tally


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer and its number, by which rankings refer to it.

    `source` is the URL of the server that gave it just now, empty where the store had it.
    """

    number: int
    answer: Answer
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Known:
    """A ranking that is there: whose it is, whether the next run should try again.

    `fell_back` says that a window of it had an unusable answer.
    """

    qid: int
    retry: bool
    fell_back: bool = False


@dataclass(frozen=True, slots=True)
class Totals:
    """A run's queries by status, and its windows."""

    queries: dict[QueryStatus, int]
    tally: Tally


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a run's output: where it came from and which ranking it shows.

    `qid` is the hash of the qid it holds against later lines, 0 where it failed and holds none.
    `digest` is that of the raw line, 0 where an older version did not keep it.
    """

    position: int
    line: int
    qid: int
    ranking: bytes
    weight: float = 1.0
    digest: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One invocation of `batchrank run`, with the settings of its job.

    `fresh_since` is the run from which on the job's rankings and answers count. `deadline` is in
    seconds since the epoch, None for none. `steps` are what was done after it (`publish`,
    `report`), each with a word on how it ended. `shard` is the part of the input that it is about,
    as `i/n`, None for all. `night` is the exit code of the run with the steps after it, None until
    the last of them has ended, and for ever if they were killed. `names` are those of the night's
    files, by the key of the job spec that gives each.
    """

    id: int
    job: int
    settings: dict[str, Any]
    input: str
    output: str
    started: float
    ended: float | None
    exit: int | None
    summary: dict[str, Any] | None
    fresh_since: int = 0
    deadline: float | None = None
    steps: Mapping[str, str] = field(default_factory=dict)
    shard: str | None = None
    night: int | None = None
    names: Mapping[str, str] = field(default_factory=dict)
