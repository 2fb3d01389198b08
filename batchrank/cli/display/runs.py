"""The runs of a store as a table, and how each ended in a word or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from batchrank.cli.display.columns import table
from batchrank.spec.walltime import local
from batchrank.store.queries import Coverage
from batchrank.store.records import Run

BY_HAND = "published"
"""How a publication by `batchrank publish` is kept among the steps after a run."""
_PUBLICATIONS = (BY_HAND, "publish")


@dataclass(frozen=True, slots=True)
class Listed:
    """A run, how much of its input is done, and the run that went on from it where one did."""

    run: Run
    coverage: Coverage
    taken_over_by: int | None

    def as_value(self) -> dict[str, object]:
        """The same for a machine."""
        run, coverage = self.run, self.coverage
        return {
            "run": run.id,
            "input": run.input,
            "output": run.output,
            "shard": run.shard,
            "started": run.started,
            "ended": run.ended,
            "exit": run.exit,
            "night": run.night,
            "done": coverage.done,
            "lines": coverage.lines,
            "is_read": coverage.is_read,
            "taken_over_by": self.taken_over_by,
            "steps": run.steps,
        }


def runs_lines(listed: Sequence[Listed]) -> list[str]:
    """The latest first."""
    header = ("run", "begun", "ended", "input", "published", "queries")
    rows = [
        (
            str(one.run.id),
            f"{local(one.run.started):%Y-%m-%d %H:%M}",
            _ended(one.run),
            one.run.input + (f" ({one.run.shard})" if one.run.shard else ""),
            next((one.run.steps[name] for name in _PUBLICATIONS if name in one.run.steps), "–"),
            done_of(one.coverage)
            if one.taken_over_by is None
            else f"went on in run {one.taken_over_by}",
        )
        for one in listed
    ]
    return table(header, rows, texts=5) if rows else ["no run yet"]


def done_of(coverage: Coverage) -> str:
    """How many lines are done, of how many as far as that is known."""
    if coverage.is_complete:
        return f"{coverage.lines:,}"
    return f"{coverage.done:,} of {'' if coverage.is_read else 'at least '}{coverage.lines:,}"


def _ended(run: Run) -> str:
    if run.exit is None:
        return "not ended or killed"
    told = {0: "complete", 3: "rejected", 75: "stopped early"}.get(run.exit, "failed")
    if run.night is None:
        return f"{told}; steps after it killed"
    if run.night != run.exit:
        return f"{told}; a step failed ({run.night})"
    return f"{told} ({run.exit})"
