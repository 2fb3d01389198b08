"""Notes what a run does, cheaply, and draws a snapshot of it when one is wanted."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass

from batchrank.formats.wording import displayable
from batchrank.progress.counts import Progress
from batchrank.progress.snapshot import (
    STEPS,
    Finished,
    GateState,
    Move,
    Snapshot,
    WindowCount,
)
from batchrank.progress.trace import Done, PaceByServer, Trace
from batchrank.results.filenames import NO_FILE
from batchrank.running.intake import Intake
from batchrank.running.timekeeper import Timekeeper
from batchrank.serving.pool import Pool
from batchrank.serving.session import Session
from batchrank.spec.jobspec import JobSpec
from batchrank.values import QueryStatus, RankedQuery
from batchrank.version import __version__

_RECENT = 20
_TOP = 10
_QUERY_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class _Noted:
    """A finished query, until a snapshot is drawn."""

    ranked: RankedQuery
    at: float
    seconds: float


class Recorder:
    """What a run has done so far: `progress` holds the counts, `snapshot` draws them.

    `open` are the queries that are, whatever they are.
    """

    def __init__(self, spec: JobSpec, source: str, output: str | None) -> None:
        self.progress = Progress()
        self.model: str | None = None
        self.run: int | None = None
        self.deadline: float | None = None
        self.time: Timekeeper | None = None
        self.session: Session | None = None
        self.pool: Pool | None = None
        self.intake: Intake | None = None
        self.open: Collection[object] = ()
        self._spec = spec
        self._source = displayable(source)
        self._output = displayable(output or NO_FILE)
        self._started = time.time()
        self._queries: Counter[QueryStatus] = Counter()
        self._recent: deque[_Noted] = deque(maxlen=_RECENT)
        self._trace = Trace(self.progress.started)
        self._pace_by_server = PaceByServer()

    def finished(self, ranked: RankedQuery, seconds: float) -> None:
        """Count a query that this run has ranked."""
        progress = self.progress
        progress.finished += 1
        progress.tally += ranked.tally
        self._queries[ranked.status] += 1
        self._recent.appendleft(_Noted(ranked, time.time(), seconds))

    def update(self) -> None:
        """Bring `progress` up to date."""
        progress = self.progress
        before, progress.now = progress.now, time.monotonic()
        progress.waits = self.session.waits if self.session is not None else None
        if self.pool is not None:
            progress.in_flight = self.pool.in_flight
            progress.capacity = self.pool.capacity
            progress.waits = self.pool.waits
            if self.pool.crowded and progress.state == "ranking":  # later there is nothing to send
                progress.held_back_seconds += progress.now - before
        if self.time is not None:
            self.time.tell(progress)
        if self.intake is not None:
            progress.lines = self.intake.lines
            progress.known = self.intake.known
            progress.open = len(self.open) + self.intake.left
            progress.share_read = self.intake.share_read
            progress.keep()

    def snapshot(
        self, store_bytes: int, *, exit_code: int | None = None, reasons: tuple[str, ...] = ()
    ) -> Snapshot:
        """The run as it stands, or as it ended where there is an exit code."""
        self.update()
        progress, spent = self.progress, self.progress.spent
        usage = spent.usage
        sends = exit_code is None and progress.state not in STEPS.values()
        now = time.time()
        rates = self._trace.add(
            Done(
                progress.now,
                progress.finished,
                spent.calls,
                usage.prompt_tokens,
                usage.completion_tokens,
                progress.in_flight,
                progress.capacity,
            )
        )
        return Snapshot(
            version=__version__,
            process=os.getpid(),
            written=now,
            store=displayable(str(self._spec.store)),
            input=self._source,
            output=self._output,
            started=self._started,
            seconds=progress.seconds,
            quiet_seconds=progress.quiet_seconds,
            held_back_seconds=progress.held_back_seconds,
            state=progress.state if exit_code is None else "ended",
            waits=progress.waits if sends else None,
            quiet_until=progress.quiet_until if sends else None,
            exit_code=exit_code,
            reasons=reasons,
            step=progress.step if exit_code is None else "",
            steps=tuple(progress.steps),
            run=self.run,
            model=self.model,
            deadline=self.deadline,
            seconds_left=progress.seconds_left if sends or exit_code is not None else None,
            share_done=progress.share_done,
            share_by_deadline=self._share_by_deadline(),
            told=progress.told,
            lines=progress.lines,
            known=progress.known,
            finished=progress.finished,
            open=progress.open,
            queries={str(status): count for status, count in self._queries.items()},
            windows=progress.tally,
            window_counts=tuple(
                WindowCount(status, source, count)
                for (status, source), count in sorted(spent.windows.items())
            ),
            calls=spent.calls,
            calls_saved=spent.saved,
            retries=spent.retries,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            rates=rates,
            trace=self._trace.calls_a_second,
            trace_step=self._trace.step,
            in_flight=progress.in_flight,
            capacity=progress.capacity,
            store_bytes=store_bytes,
            endpoints=self._pace_by_server.add(
                progress.now, self.pool.states if self.pool is not None else ()
            ),
            gates=self._gates(),
            recent=tuple(map(_drawn, self._recent)),
        )

    @property
    def trace(self) -> dict[str, object]:
        """What is kept in the store of how the run went over time."""
        return self._trace.as_dict()

    def _share_by_deadline(self) -> float | None:
        """At the pace so far, in the time that is not quiet."""
        done, work = self.progress.share_done, self.progress.work_left
        left = None if self.time is None else self.time.pace.left
        if left is None or done is None or work is None:
            return None
        return done + (1 - done) * min(1.0, max(0.0, left) / work) if work else 1.0

    def _gates(self) -> tuple[GateState, ...]:
        spec, tally, finished = self._spec, self.progress.tally, self.progress.finished
        bad = tally.bad / tally.windows if tally.windows else None
        failed = self._queries[QueryStatus.FAILED] / finished if finished else None
        gates = [_share("max_fallback", bad, spec.max_fallback)]
        gates.append(_share("max_failed", failed, spec.max_failed))
        if spec.gate_qrels is not None:
            gates.append(GateState("gate_qrels", None, None, self.progress.canaries_passed))
        if spec.min_overlap is not None:
            gates.append(GateState("min_overlap", None, spec.min_overlap, None))
        return tuple(gates)


def _share(name: str, value: float | None, limit: float) -> GateState:
    return GateState(name, value, limit, None if value is None else value <= limit)


def _drawn(noted: _Noted) -> Finished:
    ranked = noted.ranked
    top = ranked.order[:_TOP]
    return Finished(
        qid=ranked.qid,
        query=ranked.query[:_QUERY_CHARACTERS],
        status=ranked.status,
        at=noted.at,
        seconds=noted.seconds,
        windows=ranked.tally.windows,
        bad_windows=ranked.tally.bad,
        candidates=len(ranked.docids),
        risen=sum(place >= len(top) for place in top),
        top=tuple(Move(ranked.docids[place], place + 1) for place in top),
    )
