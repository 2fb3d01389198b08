"""Any OpenAI-compatible chat server: vLLM, llama.cpp, SGLang, LM Studio, Ollama's /v1, others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson

from batchrank.backends.base import BackendOptions, Call, ask
from batchrank.backends.bodies import read_answer, read_object
from batchrank.backends.detection import detect
from batchrank.backends.dialects import DIALECTS
from batchrank.backends.loose import count, rows
from batchrank.backends.rerankers import ROUTES, find_route
from batchrank.backends.scoring import joined
from batchrank.backends.sharing import BACKGROUND, crowd, in_background
from batchrank.calls import Answer, LikelihoodPrompt, Prompt, RerankPrompt, ServerInfo
from batchrank.errors import BadResponseError, FatalServerError, RefusedError


class OpenAIBackend:
    """A model behind `/v1/chat/completions`, asked in the dialect of the server it turns out to be.

    Raises UsageError for an unusable address or a key that can't be sent safely.
    """

    def __init__(self, options: BackendOptions) -> None:
        self._options = options
        root = options.base_url.rstrip("/").removesuffix("/v1")
        self._http = options.connect(root)
        self.url = self._http.url
        self.in_background = False
        """Whether requests say that others go first."""
        self._info: ServerInfo | None = None
        self._rerank_path = ROUTES[0]
        self._spelled: tuple[str, Sequence[int] | None] = ("", None)

    async def describe(self) -> ServerInfo:
        """See `Backend.describe`."""
        info = await detect(self._http, self._options.model, thinking=self._options.thinking)
        weights = self._http.weights
        self._info = info = info if weights is None else replace(info, identity=weights)
        if info.kind == "tei" and not self._options.rerank:
            raise FatalServerError(
                f"{self.url} is Text Embeddings Inference, which scores documents and writes no "
                "text: use --strategy pointwise --answer rerank"
            )
        if self._options.rerank:
            self._rerank_path = await find_route(self._http, info)
        self.in_background = self._options.background and info.kind in BACKGROUND
        return info

    def encode(self, prompt: Prompt) -> Call:
        """See `Backend.encode`."""
        if self._info is None:
            raise RuntimeError("describe() comes before encode()")
        dialect = DIALECTS[self._info.kind]
        if isinstance(prompt, LikelihoodPrompt):
            if dialect.likelihood is None:
                raise ValueError(f"{self._info.kind} gives no likelihood of a text.")
            return dialect.likelihood(prompt, self._info.model, self._options.seed)
        if isinstance(prompt, RerankPrompt):
            return dialect.rerank(prompt, self._rerank_path, self._info.model)
        if not dialect.forms:
            raise ValueError(f"{self._info.kind} writes no text: it serves answer rerank alone.")
        body = dialect.body(
            prompt,
            model=self._info.model,
            seed=self._options.seed,
            thinking=self._options.thinking,
        )
        return Call("/v1/chat/completions", orjson.dumps(body), read_answer)

    async def send(self, call: Call, seconds: float) -> Answer:
        """See `Backend.send`."""
        if call.parts:
            return joined([await self.send(part, seconds) for part in call.parts])
        if call.spelled is not None and call.target is not None:
            call = replace(call, body=call.spelled(await self._tokens(call.target, seconds)))
        if not self.in_background:
            return await ask(self._http, call, seconds)
        assert self._info is not None
        polite = replace(call, body=in_background(call.body, self._info.kind))
        try:
            return await ask(self._http, polite, seconds)
        except RefusedError as error:
            if "priority" not in str(error).lower():
                raise
        # vLLM refuses the field unless it was started with priority scheduling.
        self.in_background = False
        return await ask(self._http, call, seconds)

    async def _tokens(self, target: str, seconds: float) -> Sequence[int] | None:
        """The tokens of a target; those of the last one are kept, as many calls share it.

        None where one of them is part of a character: no grammar of llama.cpp can hold it.
        """
        if self._spelled[0] != target:
            request = {"content": target, "add_special": False, "with_pieces": True}
            answer = await self._http.post("/tokenize", orjson.dumps(request), seconds)
            tokens = rows(read_object(answer).get("tokens"))
            numbers = [number for row in tokens if (number := count(row.get("id"))) is not None]
            if not numbers or len(numbers) < len(tokens):
                raise BadResponseError("The server's /tokenize gives no tokens.")
            whole = all(isinstance(row.get("piece"), str) for row in tokens)
            self._spelled = (target, numbers if whole else None)
        return self._spelled[1]

    @property
    def reconnects(self) -> int:
        """See `Backend.reconnects`."""
        return self._http.reconnects

    async def crowd(self, own: int) -> int | None:
        """See `Backend.crowd`."""
        assert self._info is not None
        return await crowd(self._http, self._info.kind, own)

    async def close(self) -> None:
        """See `Backend.close`."""
        await self._http.close()
