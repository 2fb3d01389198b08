"""Opens the model server that a job names, finds one where it names none, or starts one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from batchrank.backends.base import Backend, BackendOptions
from batchrank.backends.discovery import discover
from batchrank.backends.embedded import EmbeddedServer, fingerprint
from batchrank.backends.ollama import OllamaBackend
from batchrank.backends.openai import OpenAIBackend
from batchrank.errors import NoServerError, ServerError, UsageError
from batchrank.fit import Fit, tokens_needed
from batchrank.jobspec import JobSpec
from batchrank.values import ServerInfo

_CONTEXT_STEP = 1024
_EMBEDDED_SLOTS = 2
_EMBEDDED_SLOTS_MOST = 8
"""Each slot takes memory for a whole context, and a processor is busy with two."""
_OLLAMA_URL = "http://127.0.0.1:11434"


@dataclass(frozen=True, slots=True)
class Connection:
    """A model server that answered, and what it says of itself."""

    backend: Backend
    info: ServerInfo


@asynccontextmanager
async def connect(
    spec: JobSpec, answer_tokens: int, say: Callable[[str], None]
) -> AsyncIterator[Connection]:
    """Open the server of `spec`; leaving the context closes it, or stops one that was started.

    Raises NoServerError where there is none, or none that can be used; UsageError where the spec
    names what isn't there (a key, a model file).
    """
    key = _api_key(spec)
    context = _context(spec, answer_tokens)
    async with AsyncExitStack() as stack:
        kind: str = spec.backend
        url = spec.base_url
        identity = None
        if kind == "embedded":
            assert spec.model_path is not None
            identity = await fingerprint(spec.model_path)
            server = await stack.enter_async_context(EmbeddedServer())
            say(f"loading {spec.model_path.name} into this machine's memory")
            slots = min(spec.concurrency or _EMBEDDED_SLOTS, _EMBEDDED_SLOTS_MOST)
            url = await server.start(spec.model_path, context, slots)
        elif url is None and kind == "ollama":
            url = _OLLAMA_URL
        elif url is None:
            found = (await discover())[0]
            kind, url = found.backend, found.url
            say(f"found {found.name} at {found.url}")
        options = BackendOptions(
            base_url=url, model=spec.model, api_key=key, thinking=spec.thinking == "on"
        )
        backend: Backend
        if kind == "ollama":
            backend = ollama = OllamaBackend(options, num_ctx=context)
        else:
            backend = OpenAIBackend(options)
        stack.push_async_callback(backend.close)
        try:
            info = await backend.describe()
            if kind == "ollama":
                say(f"waiting until {url} has loaded {info.model}")
                await ollama.warm_up(max(spec.timeout, 600))
        except ServerError as error:
            raise NoServerError(f"{url}: {error}") from error
        if identity is not None:
            info = replace(info, identity=f"gguf sha256:{identity}")
        yield Connection(backend, info)


def _context(spec: JobSpec, answer_tokens: int) -> int:
    """Tokens of context a slot needs: one value a job, since Ollama reloads the model for another.

    Rounded up, so that a small change of settings keeps the value, and with it a loaded model.
    """
    needed = tokens_needed(Fit(spec.window_size, spec.max_doc_tokens), answer_tokens)
    return -(-needed // _CONTEXT_STEP) * _CONTEXT_STEP


def _api_key(spec: JobSpec) -> str | None:
    if spec.api_key_env is None:
        return None
    key = os.environ.get(spec.api_key_env)
    if not key:
        raise UsageError(f"environment variable {spec.api_key_env} with the API key is not set")
    return key
