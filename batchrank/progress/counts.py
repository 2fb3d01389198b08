"""How far a running job is, in counts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from batchrank.formats.wording import counted
from batchrank.progress.snapshot import State, Step
from batchrank.ranking.outcomes import Spent
from batchrank.values import Tally

_MEANINGFUL = 5
"""Queries after which the time that is left can be told."""


@dataclass(slots=True)
class Progress:
    """Counts of this run: `known` queries were finished before it, `finished` were ranked by it.

    `share_read` is the part of the input that was read, None where its size is not known;
    times are seconds of a monotonic clock.
    """

    state: State = "starting"
    started: float = field(default_factory=time.monotonic)
    now: float = field(default_factory=time.monotonic)
    lines: int = 0
    known: int = 0
    finished: int = 0
    open: int = 0
    share_read: float | None = None
    most_done: float = 0.0
    """The largest share that was told as done so far."""
    in_flight: int = 0
    capacity: int = 0
    step: str = ""
    """What the step after the run that is on is at."""
    steps: list[Step] = field(default_factory=list)
    """Those that have ended."""
    waits: str | None = None
    """Why nothing is sent: no server answers, or these are quiet hours."""
    canaries_passed: bool | None = None
    """Whether the judged queries came out no worse; None while they are not all ranked."""
    quiet_until: float | None = None
    """Until when, of these, in seconds since the epoch."""
    quiet_seconds: float = 0.0
    """How much of the time so far was quiet hours."""
    held_back_seconds: float = 0.0
    """How much of it nothing was sent as others waited at the servers."""
    quiet_ahead: float = 0.0
    """How much of the time that is left will be."""
    tally: Tally = field(default_factory=Tally)
    spent: Spent = field(default_factory=Spent)

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return self.now - self.started

    @property
    def seconds_at_work(self) -> float:
        """Since the run began, quiet hours left out."""
        return self.seconds - self.quiet_seconds

    @property
    def share_done(self) -> float | None:
        """The part of the input that is finished, by bytes; never less than was told before.

        As it is read on, lines that are longer or shorter than those before change the estimate.
        """
        if self.share_read is None or not self.lines:
            return None
        return max(self.most_done, self.share_read * (self.lines - self.open) / self.lines)

    def keep(self) -> None:
        """Let the share that is done now be the least from now on."""
        self.most_done = self.share_done or 0.0

    @property
    def told(self) -> str:
        """Queries that are finished, of how many where all were read."""
        done = self.known + self.finished
        if self.share_read == 1.0:
            return f"{done:,} of {counted(self.lines, 'query', 'queries')}"
        return counted(done, "query", "queries")

    @property
    def work_left(self) -> float | None:
        """Seconds at the pace so far, by what this run had to do itself, quiet hours left out."""
        done = self.share_done
        if not done or self.finished < _MEANINGFUL:
            return None
        ranked = done - (self.share_read or 0.0) * self.known / self.lines
        return self.seconds_at_work * (1 - done) / ranked if ranked > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """The same with the quiet hours that lie ahead."""
        return None if (left := self.work_left) is None else left + self.quiet_ahead
