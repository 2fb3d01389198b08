"""Tries jobs on a sample, one after another, each an ordinary run through one store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from batchrank.errors import (
    BatchrankError,
    LostServerError,
    NoServerError,
    RejectedError,
    UnfitServerError,
)
from batchrank.formats.sources.source import Source
from batchrank.measuring.runs import falling
from batchrank.measuring.sampling import Sample
from batchrank.metrics.evaluation import Scores
from batchrank.progress.snapshot import Snapshot
from batchrank.ranking.replay import Replayed, replay
from batchrank.running.runner import Runner
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import make_spec
from batchrank.spec.stagespec import StageSpec
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import RankedQuery

Settings = Mapping[str, object]
"""Keys of a job spec with their values."""

OF_A_NIGHT = (
    *("output", "output_format", "store", "limit", "gate_qrels", "min_overlap"),
    *("deadline", "time_limit", "degrade"),
    *("incremental", "incremental_max_change", "incremental_max_age"),
)
"""Settings of a job that mean nothing on a sample of its input."""
_OF_THE_INPUT = ("format", "corpus", "topics", "run_file", "shard")
"""Those by which the input is read that the sample, a file of its own, is drawn from."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A job's rankings of a sample, in its order; `rejected` says which gate they don't pass."""

    run: Run
    queries: tuple[RankedQuery, ...]
    calls: int
    rejected: str | None

    @property
    def scores(self) -> Scores:
        """The rankings as a run to measure."""
        return {one.qid: falling(one.ranking) for one in self.queries}

    @property
    def first_stage(self) -> Scores:
        """What the rankings began with, as a run to measure."""
        return {one.qid: falling(one.docids) for one in self.queries}


class Trials:
    """Runs jobs over one sample. What is in the store costs no call, and needs no server.

    `say` and `tick` are as for `Runner`; what several jobs have to say is said once.
    `most_calls` bounds the calls for windows of all jobs together.
    """

    def __init__(
        self,
        sample: Sample,
        store: Path,
        *,
        most_calls: int | None = None,
        say: Callable[[str], None],
        tick: Callable[[Snapshot], None],
    ) -> None:
        self.calls = 0
        """Calls for windows so far."""
        self._sample = sample
        self._store = store
        self._most_calls = most_calls
        self._say = say
        self._tick = tick
        self._said: set[str] = set()
        self._runner: Runner | None = None
        self._reason: BatchrankError | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._reason is not None

    @property
    def awaited(self) -> str | None:
        """See `Runner`."""
        return None if self._runner is None else self._runner.awaited

    def stop(self, reason: BatchrankError) -> None:
        """End the job that runs as `Runner.stop` does, and begin no other."""
        self._reason = reason
        if self._runner is not None:
            self._runner.stop(reason)

    def abort(self) -> None:
        """Drop what is in flight."""
        if self._runner is not None:
            self._runner.abort()

    def spec(self, values: Settings) -> JobSpec:
        """The job of these settings as it is tried; raises UsageError."""
        kept = {
            name: value
            for name, value in values.items()
            if name not in (*OF_A_NIGHT, *_OF_THE_INPUT)
        }
        return make_spec({**kept, "store": self._store})

    async def run(self, values: Settings, *, fresh: bool = False) -> Trial:
        """Rank the sample by the job of `values`; `fresh` asks all of it anew.

        Raises BudgetSpentError where that would take more calls than are left, StoppedError where
        it was stopped, or where there is no server any more after it answered others of these jobs;
        and whatever ends a run without a result.
        """
        if self._reason is not None:
            raise self._reason
        left = None if self._most_calls is None else self._most_calls - self.calls
        output = self._sample.folder / "trial.jsonl"
        self._runner = runner = Runner(
            self.spec(values),
            Source(str(self._sample.file)),
            str(output),
            fresh=fresh,
            most_calls=left,
            say=self._say_once,
            tick=self._tick,
        )
        try:
            report = await runner.run()
        except UnfitServerError:
            raise
        except NoServerError as error:
            raise (LostServerError(str(error)) if self.calls else error) from error
        self.calls += report.progress.spent.calls
        if (reason := runner.why_stopped) is not None and not isinstance(reason, RejectedError):
            raise reason
        rejected = None
        if report.exit_code == RejectedError.exit_code:
            rejected = "; ".join([*report.reasons, *report.examples[:1]])
        queries: list[RankedQuery] = []
        async with await Store.open(self._store) as store:
            async for chunk in store.rows(report.run.id):
                queries += (ranked for _, ranked in chunk)
        return Trial(report.run, tuple(queries), report.progress.spent.calls, rejected)

    async def run_well(self, values: Settings, *, fresh: bool = False) -> Trial:
        """As `run`; raises RejectedError where a gate is not passed."""
        trial = await self.run(values, fresh=fresh)
        if trial.rejected is not None:
            raise RejectedError(trial.rejected)
        return trial

    async def windows(self, trial: Trial) -> list[list[Replayed]]:
        """The windows of each query of a trial with their answers."""
        async with await Store.open(self._store) as store:
            return [await replay(one, trial.run.settings, store) for one in trial.queries]

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)


def without_stages(base: JobSpec) -> dict[str, object]:
    """What a job spec says beside how its stages rank."""
    ranking = {*StageSpec.model_fields, "preset", "stage"}
    return {name: value for name, value in given(base).items() if name not in ranking}


def given(spec: JobSpec) -> dict[str, object]:
    """The settings that a job spec was made from."""
    return spec.model_dump(exclude_unset=True, by_alias=True)
