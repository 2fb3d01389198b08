"""Opens the model servers that a job names, finds one where it names none, or starts one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from batchrank.backends.base import Backend, BackendOptions
from batchrank.backends.discovery import discover
from batchrank.backends.embedded.runtimes import Load
from batchrank.backends.embedded.transport import EmbeddedModel
from batchrank.backends.ollama import OllamaBackend
from batchrank.backends.openai import OpenAIBackend
from batchrank.backends.transport import Gate, Transport
from batchrank.calls import ServerInfo
from batchrank.clock import SystemClock
from batchrank.errors import NoServerError, ServerError, UnavailableError, UsageError
from batchrank.serving.backoff import persist_loading
from batchrank.serving.fit import Fit, tokens_needed
from batchrank.serving.gather import gather_ready
from batchrank.serving.membership import Changed
from batchrank.serving.nodes import nodes_of
from batchrank.spec.endpointspec import EndpointSpec
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.times import parse_duration

_CONTEXT_STEP = 1024
_EMBEDDED_SLOTS = 2
_EMBEDDED_SLOTS_MOST = 8
"""Each slot takes memory for a whole context, and a processor is busy with two."""
_OLLAMA_URL = "http://127.0.0.1:11434"


@dataclass(frozen=True, slots=True)
class Member:
    """One server of a job; `info` is what it discloses, None where it can't be reached yet."""

    spec: EndpointSpec
    backend: Backend
    info: ServerInfo | None

    @property
    def can_lead(self) -> bool:
        """Whether the job's model can be known by it."""
        return self.info is not None and not self.spec.equal


@dataclass(frozen=True, slots=True)
class Connection:
    """A model server that answered, and what it says of itself; `members` are it and the others."""

    backend: Backend
    info: ServerInfo
    members: tuple[Member, ...]
    changes: AsyncIterator[Changed] | None = None
    """Servers that come and go, where they may."""


@asynccontextmanager
async def connect(
    spec: JobSpec,
    answer_tokens: int,
    say: Callable[[str], None],
    waits: Callable[[str], None],
    gate: Gate,
) -> AsyncIterator[Connection]:
    """Open the servers of `spec`; leaving the context closes them, or stops one that was started.

    `waits` is told what it waits for, `say` the rest.
    Nothing is looked for, fetched, started or sent before `gate` lets it.
    Raises NoServerError where there is none, none that can be used, or two that serve different
    models; UsageError where the spec names what isn't there (a key, a model file).
    """
    await gate()
    context = _context(spec, answer_tokens)
    async with AsyncExitStack() as stack:
        kind: str = spec.backend
        servers = spec.servers
        if kind != "embedded" and servers[0].base_url is None:
            url = _OLLAMA_URL
            if kind != "ollama":
                found = (await discover())[0]
                kind, url = found.backend, found.url
                say(f"found {found.name} at {found.url}")
            servers = (servers[0].model_copy(update={"base_url": url}),)
        model = _embedded(spec, context) if kind == "embedded" else None
        changes = None
        if spec.engine == "ray":
            make = partial(_backend, spec, kind, servers[0], context, gate)
            if model is not None:
                say(f"{model.announcement}, on each node of the Ray cluster")
            nodes = await stack.enter_async_context(nodes_of(spec, model, make, say, gate))
            backends = nodes.present
            servers *= len(backends)
            changes = nodes.changes()
        else:
            transport = None
            if model is not None:
                transport = await model.open(say, gate)
                stack.push_async_callback(transport.close)
            backends = [_backend(spec, kind, one, context, gate, transport) for one in servers]
            for backend in backends:
                stack.push_async_callback(backend.close)
        pairs = list(zip(servers, backends, strict=True))
        met = await gather_ready(
            [_meet(spec, *pair, say, waits, alone=len(pairs) == 1) for pair in pairs],
            # Others answer GETs alone at first: one of them may hang, and one that loads says so.
            lambda member: kind == "ollama" and member.can_lead,
            SystemClock(),
        )
        members = []
        for member, (server, backend) in zip(met, pairs, strict=True):
            if member is None:
                say(f"warning: {backend.url} is not ready, and others are: the job starts without")
            members.append(member or Member(server, backend, None))
        first = _first(members, spec.engine)
        assert first.info is not None
        others = [member for member in members if member is not first]
        yield Connection(first.backend, first.info, (first, *others), changes)


def _embedded(spec: JobSpec, context: int) -> EmbeddedModel:
    """The model that a job loads itself."""
    slots = min(spec.concurrency or _EMBEDDED_SLOTS, _EMBEDDED_SLOTS_MOST)
    path = spec.model_path and spec.model_path.absolute()
    return EmbeddedModel(path, Load(context, slots, gpus=spec.num_gpus))


def _backend(
    spec: JobSpec,
    kind: str,
    server: EndpointSpec,
    context: int,
    gate: Gate,
    transport: Transport | None = None,
) -> Backend:
    url = server.base_url if transport is None else transport.url
    assert url is not None
    options = BackendOptions(
        base_url=url,
        model=server.model,
        api_key=_api_key(server) if transport is None else None,
        thinking=spec.thinking == "on",
        insecure=spec.insecure,
        background=spec.priority == "background",
        rerank=any(stage.answer == "rerank" for stage in spec.stages),
        gate=gate,
        transport=transport,
    )
    return OllamaBackend(options, num_ctx=context) if kind == "ollama" else OpenAIBackend(options)


async def _meet(
    spec: JobSpec,
    server: EndpointSpec,
    backend: Backend,
    say: Callable[[str], None],
    waits: Callable[[str], None],
    *,
    alone: bool,
) -> Member:
    """Ask a server what it is, waiting while it loads; one of several may be down for now."""
    patience = parse_duration(spec.wait_for_server)
    told = False

    def loading() -> None:
        nonlocal told
        if not told:
            waits(f"waiting until {backend.url} has loaded its model")
        told = True

    try:
        info = await persist_loading(backend.describe, asyncio.sleep, patience, loading)
        if isinstance(backend, OllamaBackend):
            waits(f"waiting until {backend.url} has loaded {info.model}")
            await backend.warm_up(max(spec.timeout, patience))
    except ServerError as error:
        if not alone and isinstance(error, UnavailableError):
            say(f"warning: {backend.url} does not answer, others may: {error}")
            return Member(server, backend, None)
        raise NoServerError.at(backend.url, error) from error
    return Member(server, backend, info)


def _first(members: list[Member], engine: str) -> Member:
    """The member whose model is the job's; NoServerError where another has a different one."""
    fit = [member for member in members if member.can_lead]
    if not fit:
        raise NoServerError(
            f"no server answers: {', '.join(member.backend.url for member in members)}"
        )
    first = fit[0]
    assert first.info is not None
    for other in fit[1:]:
        assert other.info is not None
        if other.info.identity != first.info.identity:
            remedy = "Give every node the same files"
            if engine != "ray":
                remedy = (
                    "Where they are the same all the same, say `equal = true` in the second's "
                    "[[endpoint]] of the job spec"
                )
            raise NoServerError(
                f"{first.backend.url} serves {first.info.identity} and {other.backend.url} serves "
                f"{other.info.identity}: one job needs one model. {remedy}"
            )
    return first


def _context(spec: JobSpec, answer_tokens: int) -> int:
    """Tokens of context a slot needs: one value a job, since Ollama reloads the model for another.

    Rounded up, so that a small change of settings keeps the value, and with it a loaded model.
    """
    needed = tokens_needed(Fit(spec.largest, spec.max_doc_tokens), answer_tokens)
    return -(-needed // _CONTEXT_STEP) * _CONTEXT_STEP


def _api_key(server: EndpointSpec) -> str | None:
    if server.api_key_env is None:
        return None
    key = os.environ.get(server.api_key_env)
    if not key:
        # Its name is not told: it may be the key itself, given in place of a name.
        whose = f"for {server.base_url} " if server.base_url else ""
        raise UsageError(
            "the environment variable that --api-key-env (api_key_env in a job spec) names "
            f"{whose}is not set: export it, with the key as its value"
        )
    return key
