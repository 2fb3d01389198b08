"""The settings that say how candidates are ranked: stages, prompts, what is asked again."""

from __future__ import annotations

import itertools
from typing import Literal, Self

from pydantic import Field, model_validator

from batchrank.spec.fields import MANY, Fraction, Switch, Whole
from batchrank.spec.selectionspec import SelectionSpec
from batchrank.spec.stagespec import StageSpec
from batchrank.spec.times import parse_duration
from batchrank.strategies.base import Strategy
from batchrank.strategies.cascade import cascade
from batchrank.strategies.incremental import Merging

_MANY_PAIRS = 30
_AFTER_THINKING = ("winners", "full", "explain", "graded")
"""Readings that read text, which may come after a model's reasoning."""


class RankingSpec(StageSpec, SelectionSpec):
    """Stages, what goes before and after them, what is asked again: part of a job's settings.

    Without `stage` it is itself its one stage.
    """

    preset: Literal["fast", "balanced", "thorough"] | None = Field(
        default=None, description="Settings that docs/strategies.md measured; others win over it."
    )
    stage: tuple[StageSpec, ...] | None = Field(
        default=None, description="Stages of a cascade, each over the best of the one before."
    )
    top_k: Whole | None = Field(
        default=None, ge=1, le=MANY, description="Documents written a query."
    )

    thinking: Literal["off", "on"] = Field(default="off", description="Let the model reason first.")
    max_doc_tokens: Whole = Field(
        default=200, ge=1, le=MANY, description="Tokens of a document in a prompt."
    )
    fit: Literal["adapt", "refuse"] = Field(
        default="adapt", description="What to do when a window exceeds the server's context."
    )
    yes: Switch = Field(
        default=False,
        description="Let pairs of more than 30 candidates be compared, in hundreds of calls.",
    )
    re_ask: Switch = Field(
        default=True, description="Ask once more, in another way, after a bad answer."
    )

    incremental: Switch = Field(
        default=False, description="Ask only for what changed since an earlier ranking of a query."
    )
    incremental_max_change: Fraction = Field(
        default=0.3, description="Share of new or edited candidates up to which that is done."
    )
    incremental_max_age: str = Field(
        default="14d", description="How old a query's last full ranking may be for that."
    )

    @model_validator(mode="after")
    def _agree_on_ranking(self) -> Self:
        self._check_stages()
        parse_duration(self.incremental_max_age)
        if self.incremental:
            self._check_incremental()
        return self

    def _check_stages(self) -> None:
        own = (StageSpec.model_fields.keys() | {"preset"}) & self.model_fields_set
        if self.stage is not None and own:
            raise ValueError(
                f"{', '.join(sorted(own))}: belongs in the [[stage]] tables, where there are any"
            )
        for stage in self.stages:
            if self.thinking == "on" and stage.answer not in _AFTER_THINKING:
                raise ValueError(f"answer {stage.answer} reads no text, so thinking must be off")
            if stage.strategy == "pairwise" and stage.depth > _MANY_PAIRS and not self.yes:
                raise ValueError(
                    f"pairwise over up to {stage.depth} candidates takes hundreds of calls a "
                    f"query: set depth to {_MANY_PAIRS} or less, or say --yes"
                )
            # A heap whose nodes have one child is a list, and sorted like one.
            is_list = stage.strategy == "setwise" and stage.method == "heap"
            if is_list and stage.window_size == 2 and stage.depth > _MANY_PAIRS and not self.yes:
                raise ValueError(
                    f"setwise by heap in windows of 2 takes thousands of calls a query for up to "
                    f"{stage.depth} candidates: set window_size to 3 or more, method to insertion "
                    f"or depth to {_MANY_PAIRS} or less, or say --yes"
                )
        for before, after in itertools.pairwise(self.stages):
            if after.depth > before.depth:
                raise ValueError("each stage's depth must be at most that of the one before")

    def _check_incremental(self) -> None:
        one_by_one = {"pointwise", "pairwise"} & {stage.strategy for stage in self.stages}
        if one_by_one:
            raise ValueError(
                f"incremental holds new documents against the earlier best in one window, which "
                f"{' and '.join(sorted(one_by_one))} has no room for"
            )
        if self.selection.arranges:
            raise ValueError(
                "incremental builds on the model's own order, which alpha, near_duplicates and mmr "
                "change: it can't be had together with them"
            )

    @property
    def stages(self) -> tuple[StageSpec, ...]:
        """The stages of ranking, at least one."""
        return self.stage or (self,)

    @property
    def tops(self) -> tuple[int | None, ...]:
        """How many of a stage's best the next one takes; of the last, how many are written."""
        return (*(stage.depth for stage in self.stages[1:]), self.top_k)

    @property
    def deepest(self) -> int:
        """How many candidates of a query are shown to a model at all."""
        return self.stages[0].depth

    @property
    def largest(self) -> int:
        """The most documents in any prompt, before anything is fitted to a server."""
        return max(stage.largest_window for stage in self.stages)

    def make_strategy(self, window_size: int, letters: int = 26) -> Strategy:
        """The strategy these settings describe, for windows of at most `window_size`.

        Windows that are read by the first token have at most `letters` documents.
        """
        made = [
            stage.stage_strategy(_readable(stage, window_size, letters), top)
            for stage, top in zip(self.stages, self.tops, strict=True)
        ]
        if len(made) == 1:
            return made[0]
        return cascade([(one, stage.depth) for one, stage in zip(made, self.stages, strict=True)])

    def make_merging(self, window_size: int, letters: int = 26) -> Merging:
        """How new documents are merged into an earlier order: in windows of the last stage."""
        last = self.stages[-1]
        size = _readable(last, window_size, letters)
        return last.merging(size, self.top_k, len(self.stages) - 1)

    @property
    def takes_one_call(self) -> bool:
        """Whether a list takes one call however long it is."""
        return [stage.strategy for stage in self.stages] == ["single"]

    def without_optional_passes(self) -> Self:
        """The same with the first of each list of passes alone."""
        if self.stage is None:
            return self.model_copy(update=self.first_passes)
        stages = tuple(one.model_copy(update=one.first_passes) for one in self.stage)
        return self.model_copy(update={"stage": stages})

    def ranking_settings(self) -> dict[str, object]:
        """What can change a ranking, apart from the model: a part of a job's key."""
        return {
            "stages": [
                stage.stage_settings(top) for stage, top in zip(self.stages, self.tops, strict=True)
            ],
            "thinking": self.thinking,
            "max_doc_tokens": self.max_doc_tokens,
            "re_ask": self.re_ask,
            "incremental": {
                "max_change": self.incremental_max_change,
                "max_age": parse_duration(self.incremental_max_age),
                "top": self.top_k,
            }
            if self.incremental
            else None,
            **self.selection_settings(),
        }


def _readable(stage: StageSpec, window_size: int, letters: int) -> int:
    """The documents of a window that can be told apart in how `stage` reads answers."""
    return min(window_size, letters) if stage.answer == "logprobs" else window_size
