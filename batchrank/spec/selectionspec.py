"""The settings of filters, and of what becomes of a model's order."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from pydantic import BaseModel, ConfigDict, Field, model_validator

from batchrank.selection.filtering import Rule, dated, first, having, lacking, scored
from batchrank.selection.interpolation import Normalise
from batchrank.selection.selection import Selection
from batchrank.spec.fields import MANY, Number, Whole

Values = tuple[str | float, ...]


class TimeRange(BaseModel):
    """Days under a metadata key, from `from` to `to`, both included; one of them may be missing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str = Field(description="Metadata key that holds the day.")
    # `from` is a word of Python's own.
    since: date | None = Field(default=None, alias="from", description="First day.")
    to: date | None = Field(default=None, description="Last day.")

    @model_validator(mode="after")
    def _is_a_range(self) -> TimeRange:
        if self.since is None and self.to is None:
            raise ValueError("a time range needs a day in from, in to, or in both")
        if self.since is not None and self.to is not None and self.since > self.to:
            raise ValueError(f"from {self.since} is after to {self.to}")
        return self


class FilterSpec(BaseModel):
    """The `[filter]` table: what a document must be like for a model to see it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    top: Whole | None = Field(
        default=None, ge=1, le=MANY, description="The first N of the first stage."
    )
    min_score: Number | None = Field(
        default=None, allow_inf_nan=False, description="The least score of the first stage."
    )
    allow: Mapping[str, Values] = Field(
        default_factory=dict, description="Metadata keys, each with the values that may be."
    )
    deny: Mapping[str, Values] = Field(
        default_factory=dict, description="Metadata keys, each with the values that may not be."
    )
    time: TimeRange | None = Field(default=None, description="Days that may be.")
    language: tuple[str, ...] | None = Field(
        default=None, description="Languages that may be, as the metadata key `language` has them."
    )

    @property
    def keys(self) -> tuple[str, ...]:
        """The metadata keys that conditions are about."""
        time = () if self.time is None else (self.time.key,)
        language = () if self.language is None else ("language",)
        return (*self.allow, *self.deny, *time, *language)

    @property
    def rules(self) -> dict[str, Rule]:
        """Each condition by the name that rows give as a reason."""
        rules: dict[str, Rule] = {}
        if self.top is not None:
            rules["top"] = first(self.top)
        if self.min_score is not None:
            rules["min_score"] = scored(self.min_score)
        rules |= {f"allow.{key}": having(key, values) for key, values in self.allow.items()}
        rules |= {f"deny.{key}": lacking(key, values) for key, values in self.deny.items()}
        if self.time is not None:
            rules["time"] = dated(self.time.key, self.time.since, self.time.to)
        if self.language is not None:
            rules["language"] = having("language", self.language)
        return rules


class SelectionSpec(BaseModel):
    """What of a job spec is about candidates before a model sees them and after it ordered them."""

    filter: FilterSpec | None = Field(
        default=None, description="What a document must be like for a model to see it."
    )
    alpha: Number = Field(
        default=1, ge=0, le=1, description="Share of the model's order beside the first stage's."
    )
    normalise: Normalise = Field(
        default="rank", description="How first-stage scores count for alpha: rank, min-max."
    )
    near_duplicates: Number | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Similarity to a better document from which one goes below the reranked.",
    )
    mmr: Number | None = Field(
        default=None, ge=0, le=1, description="Diversity: lambda of MMR, 1 for relevance alone."
    )

    @property
    def selection(self) -> Selection:
        """What these settings do."""
        return Selection(
            rules=self.filter.rules if self.filter else {},
            alpha=self.alpha,
            normalise=self.normalise,
            near_duplicates=self.near_duplicates,
            mmr=self.mmr,
        )

    def selection_settings(self) -> dict[str, object]:
        """What of these settings changes a ranking, nothing where nothing was asked for."""
        used: dict[str, object] = {}
        if self.filter is not None and self.filter.rules:
            used["filter"] = self.filter.model_dump(mode="json", by_alias=True, exclude_none=True)
        if self.alpha < 1:
            used |= {"alpha": self.alpha, "normalise": self.normalise}
        used |= {
            name: value
            for name in ("near_duplicates", "mmr")
            if (value := getattr(self, name)) is not None
        }
        return used
