"""The settings of a publication: `batchrank publish`, and `[publish]` of a job spec."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator

from batchrank.entries import Scheme, is_namespace
from batchrank.spec.fields import MANY, Number, Switch, Whole
from batchrank.spec.times import parse_duration
from batchrank.values import QueryStatus

_MOST_JITTER = 0.9


class PublishSpec(BaseModel):
    """The `[publish]` table: where a run's rankings go as cache entries, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str = Field(
        min_length=1,
        description="redis://HOST:PORT/DB, sqlite:FILE, jsonl:FILE or parquet:FILE.",
    )
    status: str = Field(
        default="ok,repaired", description="Queries to publish: ok, repaired, degraded, unranked."
    )
    ttl: str = Field(
        default="7d", description="When an entry ends that no later night renews; none for never."
    )
    jitter: Number = Field(
        default=0.1,
        ge=0,
        le=_MOST_JITTER,
        description="Up to this share is taken off ttl, so that not all end at once.",
    )
    normalise: str = Field(
        default="nfkc,casefold,spaces",
        description="What makes queries alike: nfkc, casefold, spaces; none for nothing.",
    )
    key_candidates: Switch = Field(default=False, description="Keys include the set of candidates.")
    replace: Switch = Field(
        default=False,
        description="Drop entries that this run doesn't have; else they stay until their TTL ends.",
    )
    min_coverage: Number = Field(
        default=0.9,
        ge=0,
        le=1,
        description="Refuse a generation that has less of the current keys.",
    )
    keep: Whole = Field(
        default=2, ge=1, le=MANY, description="Generations that stay, for --rollback."
    )
    namespace: str = Field(default="batchrank", description="What all keys in Redis begin with.")
    password_env: str | None = Field(
        default=None, description="Environment variable with the password of Redis."
    )
    max_ops: Whole | None = Field(
        default=None, ge=1, le=MANY, description="Writes a second to Redis at most."
    )
    ungated: Switch = Field(
        default=False,
        description="Also a run that was rejected, killed or stopped before its deadline.",
    )

    @field_validator("status")
    @classmethod
    def _are_statuses(cls, text: str) -> str:
        known = {str(status) for status in QueryStatus if status is not QueryStatus.FAILED}
        if not {name.strip() for name in text.split(",")} <= known:
            raise ValueError("use some of ok, repaired, degraded, unranked")
        return text

    @field_validator("normalise")
    @classmethod
    def _are_steps(cls, text: str) -> str:
        try:
            Scheme.parse(text)
        except ValueError:
            raise ValueError("use some of nfkc, casefold, spaces, or none") from None
        return text

    @field_validator("ttl")
    @classmethod
    def _is_duration(cls, text: str) -> str:
        if text != "none" and parse_duration(text) <= 0:
            raise ValueError("must be more than nothing; none for never")
        return text

    @field_validator("namespace")
    @classmethod
    def _is_name(cls, text: str) -> str:
        if not is_namespace(text):
            raise ValueError("use letters, digits, _ . : and -")
        return text

    @property
    def statuses(self) -> tuple[QueryStatus, ...]:
        """The statuses of queries that are published."""
        return tuple(QueryStatus(name.strip()) for name in self.status.split(","))

    @property
    def scheme(self) -> Scheme:
        """How keys are made."""
        return Scheme(Scheme.parse(self.normalise).steps, self.key_candidates)

    @property
    def seconds(self) -> float | None:
        """`ttl` in seconds, None for never."""
        return None if self.ttl == "none" else parse_duration(self.ttl)
