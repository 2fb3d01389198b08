"""How a run ended: what is said of it, kept in its store and printed."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from batchrank.progress.counts import Progress
from batchrank.results.causes import Cause
from batchrank.store.history import Changes
from batchrank.store.queries import Coverage
from batchrank.store.records import Run, Totals

_CAUSES = 10


@dataclass(frozen=True, slots=True)
class Report:
    """How a run ended: `exit_code` as in the command line's contract, `reasons` in sentences.

    `publishable` says that what is done may be published: the run is complete, or its time was up,
    and no gate was failed. `coverage` tells how much is done, where not all is; `changes` what is
    new in the input since the last run that ended, where it was read to its end both times.
    `failures` tell why lines failed, `silences` what servers said in place of an answer.
    """

    run: Run
    exit_code: int
    reasons: list[str]
    examples: list[str]
    totals: Totals
    progress: Progress
    warnings: list[str]
    failures: list[Cause]
    silences: list[Cause]
    store: str
    output: str | None
    left_out: list[str]
    publishable: bool = False
    coverage: Coverage | None = None
    changes: Changes | None = None
    reduced: int = 0
    incremental: int = 0
    model_changed: bool = False
    """What stopped it is that another model is served."""

    def summary(self) -> dict[str, object]:
        """What is kept of a run in the store, and printed with --json."""
        spent = self.progress.spent
        return {
            "run": self.run.id,
            "exit_code": self.exit_code,
            "reasons": self.reasons,
            "examples": self.examples,
            "publishable": self.publishable,
            "queries": {str(status): n for status, n in self.totals.queries.items()},
            "windows": asdict(self.totals.tally),
            "already_finished": self.progress.known,
            "left": asdict(self.coverage) if self.coverage else None,
            "input_changes": asdict(self.changes) if self.changes else None,
            "reduced": self.reduced,
            "incremental": self.incremental,
            "servers": spent.servers,
            "calls": spent.calls,
            "calls_saved": spent.saved,
            "retries": spent.retries,
            "prompt_tokens": spent.usage.prompt_tokens,
            "completion_tokens": spent.usage.completion_tokens,
            "seconds": round(self.progress.seconds, 3),
            "quiet_seconds": round(self.progress.quiet_seconds, 3),
            "held_back_seconds": round(self.progress.held_back_seconds, 3),
            "store": self.store,
            "output": self.output,
            "left_out": self.left_out,
            "failures": [asdict(cause) for cause in self.failures],
            "silences": [asdict(cause) for cause in self.silences[:_CAUSES]],
            "warnings": self.warnings,
        }
