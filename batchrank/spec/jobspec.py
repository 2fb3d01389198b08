"""A job's settings: one frozen spec from a TOML file and the command line's flags."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from batchrank.errors import UsageError
from batchrank.keys import job_key
from batchrank.spec.address import parse_address
from batchrank.spec.complaints import NOWHERE, Given, complaint, unreadable_text
from batchrank.spec.fields import MANY, Fraction, Number, Switch, Whole
from batchrank.spec.filespec import FileSpec
from batchrank.spec.presets import ONLY_LIKELIHOODS, with_implied
from batchrank.spec.publishspec import PublishSpec
from batchrank.spec.rankingspec import RankingSpec
from batchrank.spec.serverspec import ServerSpec
from batchrank.spec.times import parse_clock, parse_duration


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Cost(BaseModel):
    """What the machines cost, for `batchrank eval --job`: no part of a job, no flag of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpu_hour: Number = Field(
        gt=0, allow_inf_nan=False, description="Price of one GPU for an hour, in any currency."
    )
    gpus: Whole = Field(default=1, ge=1, le=MANY, description="GPUs that the job keeps busy.")


class JobSpec(RankingSpec, ServerSpec, FileSpec):
    """Every setting of a run; a field's name is its TOML key and, with dashes, its flag.

    Raises UsageError, which names the setting, where one is unknown or its value can't be used.
    """

    max_fallback: Fraction = Field(
        default=0.05, description="Share of bad windows that is accepted."
    )
    max_failed: Fraction = Field(
        default=0.01, description="Share of failed queries that is accepted."
    )

    gate_qrels: Path | None = Field(
        default=None, description="TREC qrels: rank these queries first, stop if they got worse."
    )
    min_overlap: Fraction | None = Field(
        default=None, description="Share of the top 10 that must be as in the last accepted run."
    )

    deadline: str | None = Field(
        default=None, description="Time of day at which to stop, such as 06:00."
    )
    time_limit: str | None = Field(default=None, description="Stop after so long: 3h, 1h30m, 45s.")
    degrade: Switch = Field(
        default=False, description="Drop optional passes where the time would not be enough."
    )
    wait_for_lock: Switch = Field(
        default=False, description="Wait for another runner of the store to end."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="json: one structured line an event on stderr."
    )

    dashboard: Switch = Field(default=False, description="Show the run on a page while it works.")
    dashboard_address: Annotated[str | None, BeforeValidator(_as_text)] = Field(
        default=None,
        description="Where the page is: HOST:PORT, or PORT on this machine; any free one if unset.",
    )
    metrics_port: Annotated[str | None, BeforeValidator(_as_text)] = Field(
        default=None, description="Serve Prometheus metrics there, on this machine or HOST:PORT."
    )
    metrics_textfile: Path | None = Field(
        default=None, description="Keep metrics in this file for node_exporter: NAME.prom."
    )

    publish: PublishSpec | None = Field(
        default=None, description="Where the rankings go as cache entries once the gates passed."
    )

    report: InstanceOf[str] | None = Field(
        default=None, description="HTML page about the run, written after it."
    )

    cost: Cost | None = Field(default=None, description="What the machines cost.")

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: object) -> object:
        return with_implied(given) if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _fit_together(self) -> JobSpec:
        self._check_model()
        self._check_times()
        for address in (self.dashboard_address, self.metrics_port):
            if address is not None:
                parse_address(address)
        if self.metrics_textfile is not None and self.metrics_textfile.suffix != ".prom":
            raise ValueError("metrics_textfile must end in .prom, or node_exporter passes over it")
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _complain(
        cls, given: object, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        # The last validator is the outermost.
        where = info.context if isinstance(info.context, Given) else NOWHERE
        if isinstance(given, dict):
            # The table as it was given: defaults may be empty.
            wrong = unreadable_text(given, where.flags, where.file)
            if wrong is not None:
                raise UsageError(wrong)
        try:
            return handler(given)
        except ValidationError as error:
            raise UsageError(complaint(error, where.flags, where.file)) from error

    def _check_model(self) -> None:
        for stage in self.stages:
            if self.backend == "ollama" and stage.answer in ("likelihood", "rerank"):
                raise ValueError(f"Ollama can't serve answer {stage.answer}")
            if self.uses_built_in_model and stage.answer != "likelihood":
                raise ValueError(ONLY_LIKELIHOODS)

    def _check_times(self) -> None:
        if self.deadline is not None:
            parse_clock(self.deadline)
        if self.time_limit is not None:
            parse_duration(self.time_limit)
        if self.degrade and self.deadline is None and self.time_limit is None:
            raise ValueError("degrade needs a deadline or a time_limit to be on time for")
        if self.degrade and self.without_optional_passes() == self:
            raise ValueError("degrade has no pass to drop: passes and merge_passes have one each")

    def target(self) -> str:
        """Which server and model are meant, and for what: what a remembered profile is filed under.

        A profile says how windows fit and how tokens count, so it holds for these settings alone.
        """
        return job_key(
            {
                "backend": self.backend,
                # The first server gives the profile; the others have to be like it.
                "base_url": _address(self.servers[0].base_url),
                "model": self.servers[0].model,
                "model_path": os.fsencode(self.model_path).hex() if self.model_path else None,
                "stages": [
                    [one.answer, one.template_name, one.largest_window] for one in self.stages
                ],
                "max_doc_tokens": self.max_doc_tokens,
                "fit": self.fit,
                "thinking": self.thinking,
            }
        ).hex()


def _address(url: str | None) -> str | None:
    """One text for all the ways in which a server's address may be given."""
    return url and url.rstrip("/").removesuffix("/v1").rstrip("/")
