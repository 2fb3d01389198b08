"""Any OpenAI-compatible chat server: vLLM, llama.cpp, SGLang, LM Studio, Ollama's /v1, others."""

from __future__ import annotations

import orjson

from batchrank.backends.base import BackendOptions, Call, ask
from batchrank.backends.bodies import read_answer
from batchrank.backends.detection import detect
from batchrank.backends.dialects import DIALECTS
from batchrank.backends.http import Http
from batchrank.values import Answer, ChatPrompt, Prompt, ServerInfo


class OpenAIBackend:
    """A model behind `/v1/chat/completions`, asked in the dialect of the server it turns out to be.

    Raises UsageError for an unusable address or a key that can't be sent safely.
    """

    def __init__(self, options: BackendOptions) -> None:
        self._options = options
        root = options.base_url.rstrip("/").removesuffix("/v1")
        self._http = Http(root, api_key=options.api_key, insecure=options.insecure)
        self.url = self._http.url
        self._info: ServerInfo | None = None

    async def describe(self) -> ServerInfo:
        """See `Backend.describe`."""
        self._info = await detect(self._http, self._options.model, thinking=self._options.thinking)
        return self._info

    def encode(self, prompt: Prompt) -> Call:
        """See `Backend.encode`."""
        if self._info is None:
            raise RuntimeError("describe() comes before encode()")
        if not isinstance(prompt, ChatPrompt):
            raise ValueError("This server answers chats only.")
        body = DIALECTS[self._info.kind].body(
            prompt,
            model=self._info.model,
            seed=self._options.seed,
            thinking=self._options.thinking,
        )
        return Call("/v1/chat/completions", orjson.dumps(body), read_answer)

    async def send(self, call: Call, seconds: float) -> Answer:
        """See `Backend.send`."""
        return await ask(self._http, call, seconds)

    async def close(self) -> None:
        """See `Backend.close`."""
        await self._http.close()
