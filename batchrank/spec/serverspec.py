"""The settings that say which servers a job asks, how, and when it holds back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from batchrank.spec.endpointspec import EndpointSpec
from batchrank.spec.fields import MANY, Number, Switch, Variable, Whole
from batchrank.spec.quiethours import QuietHours, parse_quiet_hours
from batchrank.spec.times import parse_duration


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


class ServerSpec(BaseModel):
    """Servers, models, keys, waiting and consideration for others: part of a job's settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        description="GGUF file for --backend embedded, or folder for vLLM there "
        "(default: Gemma 3 270M, fetched once).",
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
        default=None,
        gt=0,
        le=86_400,
        description="Seconds from its first call on, after which a query is given up.",
    )
    wait_for_server: str = Field(
        default="15m",
        description="How long to wait for servers that are gone in mid-run, or load their model at "
        "the start: 15m, 1h, 90s. One that refuses connections at the start is not waited for.",
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
        default=1, ge=1, le=64, description="Clients, or models, on each node of the Ray cluster."
    )
    num_gpus: Number = Field(
        default=0, ge=0, le=64, description="GPUs, or a share of one, for the model on each node."
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

    @model_validator(mode="after")
    def _agree_on_servers(self) -> ServerSpec:
        parse_duration(self.wait_for_server)
        if self.quiet_hours is not None:
            parse_quiet_hours(self.quiet_hours)
        self._check_engine()
        if self.endpoint is not None:
            self._check_endpoints(self.endpoint)
        self._check_that_none_repeats()
        if self.base_url is not None and self.backend == "embedded":
            raise ValueError("backend embedded starts its own server: leave base_url out")
        if self.model_path is not None and self.backend != "embedded":
            raise ValueError("model_path goes with backend embedded")
        return self

    def _check_engine(self) -> None:
        if self.num_gpus and (self.engine, self.backend) != ("ray", "embedded"):
            raise ValueError("num_gpus goes with engine ray and backend embedded")
        if self.num_gpus > 1 and self.num_gpus % 1:
            raise ValueError("num_gpus is a whole number or a share of one, as Ray counts them")
        if self.engine != "ray":
            if self.ray_address != "auto" or self.workers_per_node != 1:
                raise ValueError("ray_address and workers_per_node go with engine ray")
            return
        if self.backend == "embedded":
            return
        if self.base_url is None or len(self.base_url) != 1:
            raise ValueError(
                "engine ray needs one base_url, by which each node reaches its own server, such as "
                "http://127.0.0.1:8000"
            )

    def _check_endpoints(self, endpoints: tuple[EndpointSpec, ...]) -> None:
        if self.base_url is not None or self.backend == "embedded":
            raise ValueError("endpoint can't be had together with base_url or backend embedded")
        if any(one.base_url is None for one in endpoints):
            raise ValueError("each endpoint needs a base_url")
        if all(one.equal for one in endpoints):
            raise ValueError(
                "one endpoint must be without equal: the model the others are equal to"
            )

    def _check_that_none_repeats(self) -> None:
        seen = set()
        for one in self.servers:
            server = ((one.base_url or "").rstrip("/").removesuffix("/v1"), one.model)
            if server in seen:
                raise ValueError(f"the server {one.base_url} is named twice: it has its slots once")
            seen.add(server)

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
