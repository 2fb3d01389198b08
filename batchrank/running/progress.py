"""What a running job shows of itself, here and to others through a small file beside the store."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from batchrank.formats.wording import counted
from batchrank.ranking.asker import Spent
from batchrank.values import Tally

_MEANINGFUL = 5
"""Queries after which the time that is left can be told."""


@dataclass(slots=True)
class Progress:
    """Counts of this run: `known` queries were finished before it, `finished` were ranked by it.

    `share_read` is the part of the input that was read, None where its size is not known;
    times are seconds of a monotonic clock.
    """

    state: str = "starting"
    started: float = field(default_factory=time.monotonic)
    now: float = field(default_factory=time.monotonic)
    lines: int = 0
    known: int = 0
    finished: int = 0
    open: int = 0
    share_read: float | None = None
    in_flight: int = 0
    capacity: int = 0
    waits: str | None = None
    """Why nothing is sent: no server answers, or these are quiet hours."""
    tally: Tally = field(default_factory=Tally)
    spent: Spent = field(default_factory=Spent)

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return self.now - self.started

    @property
    def share_done(self) -> float | None:
        """The part of the input that is finished."""
        if self.share_read is None or not self.lines:
            return None
        return self.share_read * (self.lines - self.open) / self.lines

    @property
    def told(self) -> str:
        """Queries that are finished, of how many where all were read."""
        done = self.known + self.finished
        if self.share_read == 1.0:
            return f"{done:,} of {counted(self.lines, 'query', 'queries')}"
        return counted(done, "query", "queries")

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far, by what this run had to do itself."""
        done = self.share_done
        if not done or self.finished < _MEANINGFUL:
            return None
        ranked = done - (self.share_read or 0.0) * self.known / self.lines
        return self.seconds * (1 - done) / ranked if ranked > 0 else None


def status_path(store: Path) -> Path:
    """Where the runner of `store` tells how far it is."""
    return store.with_name(f"{store.name}.status")


def write_status(store: Path, progress: Progress) -> None:
    """Replace the status file at once; a status that can't be written is not worth a job."""
    path = status_path(store)
    scratch = path.with_name(f"{path.name}.new")
    fields = {**asdict(progress), "process": os.getpid(), "written": time.time()}
    fields |= {"seconds": progress.seconds, "seconds_left": progress.seconds_left}
    fields["told"] = progress.told
    with contextlib.suppress(OSError):
        scratch.write_bytes(orjson.dumps(fields))
        scratch.replace(path)


def read_status(store: Path) -> dict[str, Any] | None:
    """What the runner of `store` told last, None where there is nothing to read."""
    try:
        status: dict[str, Any] = orjson.loads(status_path(store).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return status
