"""Ollama by its native chat route: one context size a job, nothing cut in silence."""

from __future__ import annotations

import orjson

from batchrank.answers.forms import schema
from batchrank.backends.base import BackendOptions, Call, ask, choose_model, identify
from batchrank.backends.bodies import read_answer, read_object
from batchrank.backends.dialects import first_token
from batchrank.backends.loose import Json, count, dig, rows, text
from batchrank.backends.transport import GET_SECONDS
from batchrank.calls import Answer, ChatPrompt, Form, Prompt, ServerInfo

KEEP_ALIVE = "1h"
"""How long Ollama keeps the model after a request: a pause in a job must not unload it."""
# top_k 0 and repeat_penalty 1 switch these samplers off.
_NEUTRAL = {
    "temperature": 0,
    "top_p": 1,
    "top_k": 0,
    "min_p": 0,
    "repeat_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
}


class OllamaBackend:
    """A model behind `/api/chat`. `num_ctx` is sent with every request: another one reloads it.

    Raises UsageError for an unusable address or a key that can't be sent safely.
    """

    def __init__(self, options: BackendOptions, *, num_ctx: int) -> None:
        self._options = options
        self._num_ctx = num_ctx
        root = options.base_url.rstrip("/").removesuffix("/v1").removesuffix("/api")
        self._http = options.connect(root)
        self.url = self._http.url
        self.in_background = False  # Ollama knows no priorities
        self._info: ServerInfo | None = None
        self._can_think = False

    async def describe(self) -> ServerInfo:
        """See `Backend.describe`. Slots stay unknown: Ollama does not disclose them."""
        models = rows((await self._http.get("/api/tags")).get("models"))
        digests = {text(model.get("name")): model.get("digest") for model in models}
        name = choose_model(self._options.model, list(digests))
        request = orjson.dumps({"model": name})
        shown = read_object(await self._http.post("/api/show", request, GET_SECONDS))
        capabilities = shown.get("capabilities")
        # To a model that can't think, some versions refuse any value of `think`.
        self._can_think = isinstance(capabilities, list) and "thinking" in capabilities
        self._info = ServerInfo(
            kind="ollama",
            model=name,
            identity=identify("ollama", digest=digests[name]),
            forms=(Form.JSON, Form.TEXT),
            context=min(self._num_ctx, _trained_context(shown) or self._num_ctx),
        )
        return self._info

    def encode(self, prompt: Prompt) -> Call:
        """See `Backend.encode`."""
        if not isinstance(prompt, ChatPrompt):
            raise ValueError("Ollama gives neither likelihoods nor relevances.")
        if prompt.form not in (Form.JSON, Form.TEXT):
            raise ValueError(f"Ollama has no {prompt.form} form.")
        constraint: Json = {}
        if prompt.form is Form.JSON:
            constraint = {"format": schema(prompt.documents, prompt.wanted, prompt.lowest)}
        body = self._body(
            [{"role": "user", "content": prompt.text}],
            {**_NEUTRAL, "seed": self._options.seed, "num_predict": prompt.max_tokens},
            constraint | dict(first_token(prompt.top_logprobs)),
        )
        return Call("/api/chat", body, read_answer)

    async def send(self, call: Call, seconds: float) -> Answer:
        """See `Backend.send`."""
        return await ask(self._http, call, seconds)

    @property
    def reconnects(self) -> int:
        """See `Backend.reconnects`."""
        return self._http.reconnects

    async def crowd(self, own: int) -> int | None:
        """See `Backend.crowd`."""
        return None

    async def warm_up(self, seconds: float) -> None:
        """Load the model, with the job's context size, and wait for it up to `seconds`.

        A client that leaves while a model is loading makes Ollama drop the load.

        Raises:
            ServerError: it did not load.
        """
        await self._http.post("/api/chat", self._body([], {}, {}), seconds)

    async def close(self) -> None:
        """See `Backend.close`."""
        await self._http.close()

    def _body(self, messages: list[Json], sampling: Json, constraint: Json) -> bytes:
        if self._info is None:
            raise RuntimeError("describe() comes first")
        body: Json = {
            "model": self._info.model,
            "messages": messages,
            "stream": False,
            "truncate": False,
            "keep_alive": KEEP_ALIVE,
            "options": {"num_ctx": self._num_ctx, **sampling},
            **({"think": self._options.thinking} if self._can_think else {}),
            **constraint,
        }
        return orjson.dumps(body)


def _trained_context(shown: Json) -> int | None:
    """The context length the model was made for, under a name that its architecture leads."""
    architecture = text(dig(shown, "model_info", "general.architecture"))
    return count(dig(shown, "model_info", f"{architecture}.context_length")) or None
