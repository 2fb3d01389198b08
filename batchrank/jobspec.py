"""A job's settings: one frozen spec from a TOML file and the command line's flags."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from batchrank.deadline import parse_clock, parse_duration
from batchrank.errors import UsageError
from batchrank.keys import job_key
from batchrank.strategies.base import Strategy
from batchrank.strategies.orders import parse_orders
from batchrank.strategies.passes import in_passes
from batchrank.strategies.segmented import segmented
from batchrank.strategies.sliding import sliding


def _fraction(value: object) -> object:
    if isinstance(value, str) and value.strip().endswith("%"):
        return float(value.strip()[:-1]) / 100
    return value


Fraction = Annotated[float, BeforeValidator(_fraction), Field(ge=0, le=1)]


class Cost(BaseModel):
    """What the machines cost, for `batchrank eval --job`: no part of a job, no flag of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gpu_hour: float = Field(gt=0, description="Price of one GPU for an hour, in any currency.")
    gpus: int = Field(default=1, ge=1, description="GPUs that the job keeps busy.")


class JobSpec(BaseModel):
    """Every setting of a run; a field's name is its TOML key and, with dashes, its flag."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    output: str | None = Field(default=None, description="Output file; - for stdout.")
    store: Path = Field(
        default=Path("batchrank.sqlite"), description="SQLite store of all checkpoints."
    )
    format: Literal["jsonl", "trec"] = Field(default="jsonl", description="Format of the output.")
    limit: int | None = Field(default=None, ge=1, description="Read only the first N lines.")

    backend: Literal["auto", "openai", "ollama", "embedded"] = Field(
        default="auto", description="How to speak to the model."
    )
    base_url: str | None = Field(
        default=None, description="Address of a model server, with or without /v1."
    )
    model: str | None = Field(default=None, description="Model name, where the server has several.")
    model_path: Path | None = Field(default=None, description="GGUF file for --backend embedded.")
    api_key_env: str | None = Field(
        default=None, description="Environment variable with the API key."
    )
    timeout: float = Field(default=300, gt=0, description="Seconds for one attempt at one call.")
    concurrency: int | None = Field(default=None, ge=1, le=100_000, description="Calls in flight.")

    strategy: Literal["segmented", "sliding"] = Field(
        default="segmented", description="How to rank."
    )
    window_size: int = Field(default=20, ge=2, le=1000, description="Documents in one prompt.")
    stride: int = Field(default=10, ge=1, description="Step of a sliding window.")
    winners: int | None = Field(
        default=None, ge=1, description="Best of a segment that go to the merge."
    )
    passes: str = Field(
        default="forward", description="Presentations: forward, reverse, shuffle:SEED."
    )
    merge_passes: str = Field(default="forward", description="The same for the merge window alone.")
    depth: int = Field(
        default=100, ge=1, description="Candidates reranked; the rest keep their order."
    )
    top_k: int | None = Field(default=None, ge=1, description="Documents written a query.")

    answer: Literal["winners", "full"] = Field(
        default="winners", description="What a window is asked for."
    )
    thinking: Literal["off", "on"] = Field(default="off", description="Let the model reason first.")
    template: str = Field(
        default="direct-en", description="Prompt template: a name or a TOML file."
    )
    max_doc_tokens: int = Field(default=200, ge=1, description="Tokens of a document in a prompt.")
    fit: Literal["adapt", "refuse"] = Field(
        default="adapt", description="What to do when a window exceeds the server's context."
    )
    re_ask: bool = Field(
        default=True, description="Ask once more, in another way, after a bad answer."
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
    degrade: bool = Field(
        default=False, description="Drop optional passes where the time would not be enough."
    )
    wait_for_lock: bool = Field(
        default=False, description="Wait for another runner of the store to end."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="json: one structured line an event on stderr."
    )

    cost: Cost | None = Field(default=None, description="What the machines cost.")

    @model_validator(mode="after")
    def _agree(self) -> JobSpec:
        parse_orders(self.passes)
        parse_orders(self.merge_passes)
        if self.strategy == "sliding" and self.stride >= self.window_size:
            raise ValueError(
                f"stride {self.stride} must be smaller than window_size {self.window_size}, "
                "or documents between two windows would be skipped"
            )
        if self.winners is not None and self.winners > self.window_size // 2:
            raise ValueError(
                f"winners {self.winners} must be at most half of window_size {self.window_size}, "
                "or the merge would never get smaller"
            )
        if self.deadline is not None:
            parse_clock(self.deadline)
        if self.time_limit is not None:
            parse_duration(self.time_limit)
        if self.degrade and self.deadline is None and self.time_limit is None:
            raise ValueError("degrade needs a deadline or a time_limit to be on time for")
        if self.degrade and self.without_optional_passes() == self:
            raise ValueError("degrade has no pass to drop: passes and merge_passes have one each")
        if self.backend == "embedded" and self.model_path is None:
            raise ValueError("backend embedded needs model_path, a GGUF file")
        if self.model_path is not None and self.backend != "embedded":
            raise ValueError("model_path goes with backend embedded")
        return self

    def make_strategy(self, window_size: int) -> Strategy:
        """The strategy these settings describe, for windows of `window_size`, passes included."""
        if self.strategy == "sliding":
            # A window made smaller to fit the context keeps the share that is carried on.
            stride = max(1, min(self.stride, self.stride * window_size // self.window_size))
            one_pass = sliding(window_size, stride)
        else:
            one_pass = segmented(
                window_size, self.winners, self.merge_top, parse_orders(self.merge_passes)
            )
        return in_passes(one_pass, parse_orders(self.passes))

    def without_optional_passes(self) -> JobSpec:
        """The same with the first of each list of passes alone."""
        first = {name: getattr(self, name).split(",")[0] for name in ("passes", "merge_passes")}
        return self.model_copy(update=first)

    @property
    def merge_top(self) -> int:
        """How many a merge must name: what is written of it, at most a whole window."""
        return min(self.top_k or self.window_size, self.window_size)

    def ranking_settings(self) -> dict[str, object]:
        """What can change a ranking, apart from the model: a part of a job's key."""
        merged = self.strategy == "segmented"
        return {
            "strategy": self.strategy,
            "window_size": self.window_size,
            "stride": None if merged else self.stride,
            "winners": self.winners if merged else None,
            "merge_passes": self.merge_passes if merged else None,
            # Not top-k itself: only what it changes in what a merge is asked for.
            "merge_top": self.merge_top if merged and self.answer == "winners" else None,
            "passes": self.passes,
            "answer": self.answer,
            "thinking": self.thinking,
            "max_doc_tokens": self.max_doc_tokens,
            "depth": self.depth,
            "fit": self.fit,
            "re_ask": self.re_ask,
        }

    def target(self) -> str:
        """Which server and model are meant, and for what: what a remembered profile is filed under.

        A profile says how windows fit and how tokens count, so it holds for these settings alone.
        """
        return job_key(
            {
                "backend": self.backend,
                "base_url": self.base_url,
                "model": self.model,
                "model_path": str(self.model_path) if self.model_path else None,
                "window_size": self.window_size,
                "max_doc_tokens": self.max_doc_tokens,
                "fit": self.fit,
                "thinking": self.thinking,
                "template": self.template,
            }
        ).hex()


def load_spec(path: Path | None, flags: Mapping[str, object]) -> JobSpec:
    """The spec of a TOML file (None for no file) overridden by flags that were given.

    Raises UsageError, naming the key, for an unreadable file, an unknown key or a bad value.
    """
    values: dict[str, object] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"job spec {path} can't be read: {error}") from error
    where = f"job spec {path}" if path is not None else "the flags"
    _refuse_unknown(values, JobSpec, where)
    if isinstance(cost := values.get("cost"), dict):
        _refuse_unknown(cost, Cost, f"{where}, [cost]")
    values.update({name: value for name, value in flags.items() if value is not None})
    try:
        return JobSpec.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise UsageError(
            f"{name.replace('_', '-')}: {reason}, got {first['input']!r}" if name else reason
        ) from error


def _refuse_unknown(values: Mapping[str, object], shape: type[BaseModel], where: str) -> None:
    """Refuse a key that `shape` has no field for, and name the nearest that it has."""
    known = list(shape.model_fields)
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key.replace("-", "_"), known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{where}: unknown key {key!r}{hint}")
