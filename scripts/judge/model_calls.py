"""Judges the model calls of each API: from a request's JSON to what is to be sent back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from . import dialects
from .answers import Judge, Purpose, Reply
from .config import MAX_LOGPROBS, Field, JudgeConfig
from .constraints import UnanswerableError
from .disclosure import ollama_name
from .knowledge import Knowledge
from .pointwise import text_before, text_of, tokens_of
from .prompt import count_prompt, prompt_text

_TOKENS = re.compile(r"root ::= <\[\d+\]>(?: <\[\d+\]>)*")
_NUMBER = re.compile(r"\d+")
TEI_TEXTS = 32
"""Texts that Text Embeddings Inference takes in a request by default."""


class RefusalError(Exception):
    """A request answered with an error `status` and a `body`."""

    def __init__(self, status: int, body: dialects.Body) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class Judged(NamedTuple):
    """An answer that is known before the time it takes has passed.

    `write` gets the seconds in the slot and the prompt tokens that were cached.
    """

    purpose: Purpose
    prompt: str
    prompt_tokens: int
    completion_tokens: int
    unknown: int
    write: Callable[[float, int], bytes]


ModelCall = Callable[[Mapping[str, Any], str], Judged]
"""Takes a request's JSON and the hash of its bytes. Raises RefusalError."""


class ModelCalls:
    """The POST routes that cost model time."""

    def __init__(self, config: JudgeConfig, knowledge: Knowledge | None) -> None:
        self._config = config
        self._judge = Judge(config, knowledge)

    def routes(self) -> dict[str, ModelCall]:
        """The routes of the kind of server."""
        routes: dict[str, ModelCall] = {"/v1/chat/completions": self.openai_chat}
        if self._config.kind == "ollama":
            return routes | {"/api/chat": self.ollama_chat}
        if self._config.kind == "llama.cpp":
            routes["/completion"] = self.llama_completion
        else:
            routes["/v1/completions"] = self.echo
        return routes | {"/v1/rerank": self.rerank, "/rerank": self.rerank}

    def openai_chat(self, payload: Mapping[str, Any], digest: str) -> Judged:
        """`/v1/chat/completions`, not streamed."""
        config = self._config
        self._check_model(payload)
        if payload.get("stream"):
            raise RefusalError(400, dialects.error(config.kind, 400, "the judge does not stream"))
        prompt = prompt_text(payload.get("messages", ()))
        reply = self._chat(
            payload,
            prompt,
            digest,
            config.honoured - {"format"},
            payload.get("max_tokens", payload.get("max_completion_tokens")),
        )
        return _judged(
            prompt,
            reply,
            lambda _, cached: orjson.dumps(dialects.openai_chat(config, reply, digest, cached)),
        )

    def ollama_chat(self, payload: Mapping[str, Any], digest: str) -> Judged:
        """Ollama's native `/api/chat`, streamed unless `stream` is false."""
        self._check_model(payload)
        model = ollama_name(self._config.model)
        options = payload.get("options", {})
        prompt = prompt_text(payload.get("messages", ()))
        if not prompt:
            return Judged("other", "", 0, 0, 0, lambda *_: dialects.ollama_loaded(model))
        context = options.get("num_ctx", self._config.context)
        if payload.get("truncate") is not False:
            # As Ollama does: the front of an over-long prompt is lost, and nothing is said.
            prompt = prompt[-4 * context :]
        reply = self._chat(
            payload,
            prompt,
            digest,
            self._config.honoured & {"format"},
            options.get("num_predict"),
            context,
        )
        stream = payload.get("stream", True)
        return _judged(
            prompt,
            reply,
            lambda seconds, _: dialects.ollama_chat(model, reply, seconds, stream=stream),
        )

    def llama_completion(self, payload: Mapping[str, Any], digest: str) -> Judged:
        """`/completion` under a grammar of one row of tokens, as likelihoods are asked for."""
        prompt, grammar = payload.get("prompt", ""), payload.get("grammar", "")
        if not _TOKENS.fullmatch(grammar) or not payload.get("n_probs"):
            refusal = "judge: it answers /completion only for a grammar of tokens, with n_probs"
            raise RefusalError(400, dialects.error("llama.cpp", 400, refusal))
        target = text_of(map(int, _NUMBER.findall(grammar)))
        logprobs, unknown = self._judge.likelihood(prompt, target, digest)
        sent, made = count_prompt(prompt), len(logprobs)
        body = dialects.llama_completion(self._config, target, logprobs, sent, made)
        return Judged("window", prompt, sent, made, unknown, lambda *_: orjson.dumps(body))

    def echo(self, payload: Mapping[str, Any], digest: str) -> Judged:
        """`/v1/completions` with `echo` and `logprobs` and nothing generated."""
        self._check_model(payload)
        if not payload.get("echo") or payload.get("max_tokens") != 0 or not payload.get("logprobs"):
            refusal = "judge: it answers /v1/completions only with echo, logprobs and max_tokens 0"
            raise RefusalError(400, dialects.error(self._config.kind, 400, refusal))
        prompt = payload["prompt"]
        before = text_before(prompt)
        logprobs, unknown = self._judge.likelihood(before, prompt[len(before) :], digest)
        sent = count_prompt(prompt)
        body = dialects.echoed(self._config, tokens_of(before), logprobs, sent)
        return Judged("window", prompt, sent, 0, unknown, lambda *_: orjson.dumps(body))

    def rerank(self, payload: Mapping[str, Any], digest: str) -> Judged:
        """`/v1/rerank` as in Jina, Cohere, llama.cpp and vLLM; with `texts`, as in TEI."""
        config = self._config
        query = payload.get("query", "")
        if texts := payload.get("texts", ()):
            if len(texts) > TEI_TEXTS:
                message = f"batch size {len(texts)} > maximum allowed batch size {TEI_TEXTS}"
                raise RefusalError(413, {"error": message, "error_type": "Validation"})
        else:
            self._check_model(payload)
            documents = payload.get("documents", ())
            texts = [d if isinstance(d, str) else d.get("text", "") for d in documents]
        relevances, unknown = self._judge.rerank(query, texts, digest)
        # A cross-encoder reads the query once with each text.
        tokens = sum(map(count_prompt, texts)) + count_prompt(query) * len(texts)
        body: object
        if "texts" in payload:
            body = dialects.tei_reranked(relevances)
        else:
            body = dialects.reranked(config, relevances, payload.get("top_n"), tokens)
        return Judged("rerank", "", tokens, 0, unknown, lambda *_: orjson.dumps(body))

    def _check_model(self, payload: Mapping[str, Any]) -> None:
        kind = self._config.kind
        own = self._config.model
        name = payload.get("model", own)
        if kind == "ollama":
            name, own = ollama_name(name), ollama_name(own)
        # llama.cpp answers for any name.
        if name != own and kind != "llama.cpp":
            raise RefusalError(404, dialects.unknown_model(kind, payload["model"]))

    def _chat(
        self,
        payload: Mapping[str, Any],
        prompt: str,
        digest: str,
        honoured: frozenset[Field],
        max_tokens: int | None,
        context: int | None = None,
    ) -> Reply:
        kind = self._config.kind
        tokens, context = count_prompt(prompt), context or self._config.context
        if tokens > context:
            raise RefusalError(400, dialects.overflow(kind, tokens, context))
        top = payload.get("top_logprobs", 0) if payload.get("logprobs") else None
        if top and top > MAX_LOGPROBS[kind]:
            message = f"Requested logprobs of {top}, greater than max allowed: {MAX_LOGPROBS[kind]}"
            raise RefusalError(400, dialects.error(kind, 400, message))
        try:
            return self._judge.chat(
                payload,
                prompt,
                digest,
                honoured=honoured,
                max_tokens=max_tokens if max_tokens and max_tokens > 0 else None,
                top_logprobs=top,
            )
        except UnanswerableError as error:
            raise RefusalError(400, dialects.error(kind, 400, f"judge: {error}")) from error


def _judged(prompt: str, reply: Reply, write: Callable[[float, int], bytes]) -> Judged:
    return Judged(
        reply.purpose, prompt, reply.prompt_tokens, reply.completion_tokens, reply.unknown, write
    )
