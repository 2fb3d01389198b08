"""Rebuilds the windows of a stored ranking, by driving its strategy with the stored answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from batchrank.answers import unanswered
from batchrank.calls import Answer
from batchrank.readings.named import READERS
from batchrank.spec.jobspec import JobSpec
from batchrank.store.store import Store
from batchrank.strategies.base import Round, drive
from batchrank.strategies.incremental import building_on
from batchrank.values import Permutation, RankedQuery, Window

_GONE = "its answer is no longer in the store"
_BUILT_ON_GONE = "what it was asked is not known: an answer before it is no longer in the store"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A window as it was asked, with its raw answer; `answer` None where there is none.

    `wanted` is how many documents the answer had to name.
    """

    round: int
    window: Window
    permutation: Permutation
    wanted: int
    answer: Answer | None
    fault: str | None

    @property
    def is_gone(self) -> bool:
        """Whether it is not known any more how it ended: its answer was asked anew (`--fresh`)."""
        return self.fault in (_GONE, _BUILT_ON_GONE)


async def replay(ranked: RankedQuery, settings: dict[str, Any], store: Store) -> list[Replayed]:
    """The windows of `ranked` in the order of its strategy; `settings` are those of its job."""
    answers = await store.answers({number for number in ranked.answers if number})
    numbers = enumerate(ranked.answers)
    faults = iter(ranked.faults)
    windows: list[Replayed] = []
    readers = [READERS[stage["answer"]] for stage in settings["stages"]]

    async def ask(asked: Round, number: int) -> list[Permutation]:
        is_known = not any(window.is_gone for window in windows)
        for window in asked:
            place, stored = next(numbers)
            reader = readers[window.stage]
            answer = answers.get(stored) if is_known else None
            if answer is not None:
                outcome = reader.read(window, answer)
                if place in ranked.again:
                    outcome = outcome.asked_again()
                fault = None
            else:
                # An answer that was asked anew for another ranking is no longer there.
                fault = next(faults) if stored == 0 else _GONE if is_known else _BUILT_ON_GONE
                outcome = unanswered(window, "no answer")
            windows.append(Replayed(number, window, outcome, reader.wanted(window), answer, fault))
        return [replayed.permutation for replayed in windows[-len(asked) :]]

    if ranked.answers:
        docids = ranked.kept[: settings["stages"][0]["depth"]]
        spec = _spec_of(settings, reduced=ranked.reduced)
        fitted = settings["fitted_window_size"], settings["fitted_letters"]
        strategy = spec.make_strategy(*fitted)
        if ranked.is_incremental:
            spec = spec.model_copy(update={"top_k": settings["incremental"]["top"]})
            strategy = building_on(ranked.lineage, strategy, spec.make_merging(*fitted), docids)
        await drive(strategy(docids), ask)
    return windows


def stages_of(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The `[[stage]]` tables of a job spec with the stages of a job's stored settings."""
    return [
        {name: value for name, value in stage.items() if name != "top" and value is not None}
        for stage in settings["stages"]
    ]


def _spec_of(settings: dict[str, Any], *, reduced: bool) -> JobSpec:
    """A job's stages, from its stored settings; `reduced`: without optional passes."""
    stages = stages_of(settings)
    spec = JobSpec.model_validate(
        {"stage": stages, "top_k": settings["stages"][-1]["top"], "yes": True}
    )
    return spec.without_optional_passes() if reduced else spec
