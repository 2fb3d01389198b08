"""A job's settings: one frozen spec from a TOML file and the command line's flags."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    model_validator,
)

from batchrank.keys import job_key
from batchrank.spec.address import parse_address
from batchrank.spec.deadline import parse_clock, parse_duration
from batchrank.spec.endpointspec import EndpointSpec
from batchrank.spec.fields import MANY, MOST, Number, Switch, Variable, Whole
from batchrank.spec.publishspec import PublishSpec
from batchrank.spec.quiet import QuietHours, parse_quiet_hours
from batchrank.spec.selectionspec import SelectionSpec
from batchrank.spec.shard import parse_shard
from batchrank.spec.stagespec import StageSpec
from batchrank.strategies.base import Strategy
from batchrank.strategies.cascade import cascade
from batchrank.strategies.delta import Merging
from batchrank.values import InputFormat, OutputFormat

_SHARE = "write a share such as 5% or 0.05"


def _fraction(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(_SHARE)
    try:
        if isinstance(value, str) and value.strip().endswith("%"):
            return float(value.strip()[:-1]) / 100
        number = float(value) if isinstance(value, str | int | float) else 0.0
    except ValueError:
        raise ValueError(_SHARE) from None
    if 1 < number <= 100:
        raise ValueError(f"write {number:g}% or {number / 100:g}")
    return value


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Fraction = Annotated[float, BeforeValidator(_fraction), Field(ge=0, le=1)]


PRESETS: Mapping[str, Mapping[str, object]] = {
    "fast": {"depth": 60},
    "balanced": {},
    "thorough": {"strategy": "tournament", "window_size": 25, "tournaments": 5},
}
"""What docs/strategies.md measured; settings that are given win."""
_BUILT_IN_MODEL: Mapping[str, object] = {
    "strategy": "pointwise",
    "answer": "likelihood",
    "max_doc_tokens": 120,
}
_ONLY_LIKELIHOODS = (
    "the model that comes with backend embedded can only be asked for likelihoods (strategy "
    "pointwise, answer likelihood); name another with model_path"
)
_MANY_PAIRS = 30
_AFTER_THINKING = ("winners", "full", "explain", "graded")
"""Readings that read text, which may come after a model's reasoning."""


class Cost(BaseModel):
    """What the machines cost, for `batchrank eval --job`: no part of a job, no flag of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpu_hour: Number = Field(
        gt=0, allow_inf_nan=False, description="Price of one GPU for an hour, in any currency."
    )
    gpus: Whole = Field(default=1, ge=1, le=MANY, description="GPUs that the job keeps busy.")


class JobSpec(StageSpec, SelectionSpec):
    """Every setting of a run; a field's name is its TOML key and, with dashes, its flag.

    Without `stage` the job is itself its one stage.
    """

    # A file's name need not be UTF-8, which pydantic would have of a `str`.
    input: InstanceOf[str] | None = Field(default=None, description="Input file; - for stdin.")
    output: InstanceOf[str] | None = Field(default=None, description="Output file; - for stdout.")
    store: Path = Field(
        default=Path("batchrank.sqlite"), description="SQLite store of all checkpoints."
    )
    output_format: OutputFormat | None = Field(
        default=None, description="Format of the output (default: by its ending, or jsonl)."
    )
    format: InputFormat | None = Field(
        default=None, description="Format of the input (default: as its first bytes say)."
    )
    corpus: Path | None = Field(
        default=None, description="Documents of a TREC run: JSONL, or TSV of docid and text."
    )
    topics: Path | None = Field(
        default=None, description="Queries of a TREC run: JSONL, or TSV of qid and text."
    )
    run_file: Path | None = Field(
        default=None, description="TREC run of the first stage, for a BEIR folder."
    )
    limit: Whole | None = Field(
        default=None, ge=1, le=MOST, description="Read only the first N lines."
    )
    shard: str | None = Field(
        default=None, description="Rank only part i of n, from 0/n to n−1/n (docs/scaling.md)."
    )

    backend: Literal["auto", "openai", "ollama", "embedded"] = Field(
        default="auto", description="How to speak to the model."
    )
    base_url: Annotated[tuple[str, ...] | None, BeforeValidator(_several)] = Field(
        default=None, description="Address of a model server, with or without /v1; or several."
    )
    endpoint: tuple[EndpointSpec, ...] | None = Field(
        default=None, description="Servers with models, keys and weights of their own."
    )
    model: str | None = Field(default=None, description="Model name, where the server has several.")
    model_path: Path | None = Field(
        default=None,
        description="GGUF file for --backend embedded (default: Gemma 3 270M, fetched once).",
    )
    api_key_env: Variable | None = Field(
        default=None, description="Environment variable with the API key."
    )
    insecure: Switch = Field(
        default=False, description="Let an API key travel over plain http to another machine."
    )
    timeout: Number = Field(
        default=300, gt=0, le=86_400, description="Seconds for one attempt at one call."
    )
    query_timeout: Number | None = Field(
        default=None, gt=0, le=86_400, description="Seconds after which a query is given up."
    )
    wait_for_server: str = Field(
        default="15m", description="How long to wait while no server answers: 15m, 1h, 90s."
    )
    concurrency: Whole | None = Field(
        default=None, ge=1, le=100_000, description="Calls in flight."
    )
    engine: Literal["local", "ray"] = Field(
        default="local", description="ray: one client on each node of a Ray cluster."
    )
    ray_address: str = Field(
        default="auto", description="Ray cluster: auto for the one of this machine, or its address."
    )
    workers_per_node: Whole = Field(
        default=1, ge=1, le=64, description="Clients on each node of the Ray cluster."
    )
    priority: Literal["normal", "background"] = Field(
        default="normal", description="background: let a server's other users go first."
    )
    max_waiting: Whole | None = Field(
        default=None,
        ge=0,
        le=MANY,
        description="Requests that may wait at a server before we hold back.",
    )
    quiet_hours: str | None = Field(
        default=None, description="Hours in which nothing is sent, such as 08:00-20:00."
    )

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
        """Add what a preset, or the model that comes with the embedded backend, stands for."""
        if not isinstance(given, dict):
            return given
        implied: dict[str, object] = {}
        if given.get("backend") == "embedded" and given.get("model_path") is None:
            implied |= _BUILT_IN_MODEL
        built_in = "strategy" in implied and given.get("stage") is None
        implied |= PRESETS.get(str(given.get("preset")), {})
        if given.get("stage") is not None:
            implied = {name: implied[name] for name in implied if name == "max_doc_tokens"}
        whole = implied | given
        if built_in and (whole["strategy"], whole["answer"]) != ("pointwise", "likelihood"):
            raise ValueError(_ONLY_LIKELIHOODS)
        return whole

    @model_validator(mode="after")
    def _fit_together(self) -> JobSpec:
        self._check_stages()
        self._check_texts()
        self._check_engine()
        if self.metrics_textfile is not None and self.metrics_textfile.suffix != ".prom":
            raise ValueError("metrics_textfile must end in .prom, or node_exporter passes over it")
        if self.endpoint is not None:
            self._check_endpoints(self.endpoint)
        one_by_one = {"pointwise", "pairwise"} & {stage.strategy for stage in self.stages}
        if self.incremental and one_by_one:
            raise ValueError(
                f"incremental holds new documents against the earlier best in one window, which "
                f"{' and '.join(sorted(one_by_one))} has no room for"
            )
        if self.incremental and self.selection.arranges:
            raise ValueError(
                "incremental builds on the model's own order, which alpha, near_duplicates and mmr "
                "change: it can't be had together with them"
            )
        if self.degrade and self.deadline is None and self.time_limit is None:
            raise ValueError("degrade needs a deadline or a time_limit to be on time for")
        if self.degrade and self.without_optional_passes() == self:
            raise ValueError("degrade has no pass to drop: passes and merge_passes have one each")
        if self.uses_built_in_model and any(one.answer != "likelihood" for one in self.stages):
            raise ValueError(_ONLY_LIKELIHOODS)
        if self.model_path is not None and self.backend != "embedded":
            raise ValueError("model_path goes with backend embedded")
        return self

    def _check_engine(self) -> None:
        if self.engine != "ray":
            if self.ray_address != "auto" or self.workers_per_node != 1:
                raise ValueError("ray_address and workers_per_node go with engine ray")
            return
        if self.backend == "embedded":
            raise ValueError("engine ray asks servers that run on the nodes, not backend embedded")
        if self.base_url is None or len(self.base_url) != 1:
            raise ValueError(
                "engine ray needs one base_url, by which each node reaches its own server, such as "
                "http://127.0.0.1:8000"
            )

    def _check_texts(self) -> None:
        readers: dict[Callable[[str], object], tuple[str | None, ...]] = {
            parse_duration: (self.wait_for_server, self.incremental_max_age, self.time_limit),
            parse_address: (self.dashboard_address, self.metrics_port),
            parse_clock: (self.deadline,),
            parse_quiet_hours: (self.quiet_hours,),
            parse_shard: (self.shard,),
        }
        for read, texts in readers.items():
            for text in texts:
                if text is not None:
                    read(text)

    def _check_stages(self) -> None:
        own = (StageSpec.model_fields.keys() | {"preset"}) & self.model_fields_set
        if self.stage is not None and own:
            raise ValueError(
                f"{', '.join(sorted(own))}: belongs in the [[stage]] tables, where there are any"
            )
        for stage in self.stages:
            if self.thinking == "on" and stage.answer not in _AFTER_THINKING:
                raise ValueError(f"answer {stage.answer} reads no text, so thinking must be off")
            if self.backend == "ollama" and stage.answer in ("likelihood", "rerank"):
                raise ValueError(f"Ollama can't serve answer {stage.answer}")
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

    def _check_endpoints(self, endpoints: tuple[EndpointSpec, ...]) -> None:
        if self.base_url is not None or self.backend == "embedded":
            raise ValueError("endpoint can't be had together with base_url or backend embedded")
        if any(one.base_url is None for one in endpoints):
            raise ValueError("each endpoint needs a base_url")
        if all(one.equal for one in endpoints):
            raise ValueError(
                "one endpoint must be without equal: the model the others are equal to"
            )

    @property
    def servers(self) -> tuple[EndpointSpec, ...]:
        """The servers of the job, at least one; one without an address is still to be found."""
        listed = self.endpoint
        if listed is None:
            listed = tuple(EndpointSpec(base_url=url) for url in self.base_url or (None,))
        own = {"model": self.model, "api_key_env": self.api_key_env}
        return tuple(
            one.model_copy(update={name: getattr(one, name) or own[name] for name in own})
            for one in listed
        )

    @property
    def hours_of_quiet(self) -> QuietHours | None:
        """When nothing is sent."""
        return None if self.quiet_hours is None else parse_quiet_hours(self.quiet_hours)

    @property
    def uses_built_in_model(self) -> bool:
        """Whether the embedded backend is to load the model that it fetches itself."""
        return self.backend == "embedded" and self.model_path is None

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

    def without_optional_passes(self) -> JobSpec:
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


def _readable(stage: StageSpec, window_size: int, letters: int) -> int:
    """The documents of a window that can be told apart in how `stage` reads answers."""
    return min(window_size, letters) if stage.answer == "logprobs" else window_size


def _address(url: str | None) -> str | None:
    """One text for all the ways in which a server's address may be given."""
    return url and url.rstrip("/").removesuffix("/v1").rstrip("/")
