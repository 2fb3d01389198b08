"""The bodies of answers and errors, in the words of each kind of server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from .answers import Reply
from .config import JudgeConfig, Kind
from .disclosure import CREATED, CREATED_ISO
from .pointwise import Logprobs

Body = dict[str, Any]


def openai_chat(config: JudgeConfig, reply: Reply, digest: str, cached: int) -> Body:
    """A chat completion as in OpenAI's API; `cached` prompt tokens came from the prefix cache."""
    return {
        "id": f"chatcmpl-{digest}",
        "object": "chat.completion",
        "created": CREATED,
        "model": config.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply.text},
                "logprobs": {"content": _logprobs(reply)} if reply.top else None,
                "finish_reason": reply.finish,
            }
        ],
        "usage": {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "total_tokens": reply.prompt_tokens + reply.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def ollama_chat(model: str, reply: Reply, seconds: float, *, stream: bool) -> bytes:
    """An answer of Ollama's `/api/chat`; streamed, the text and the end have a line each."""
    common: Body = {"model": model, "created_at": CREATED_ISO}
    message = {"role": "assistant", "content": reply.text}
    logprobs = {"logprobs": _logprobs(reply)} if reply.top else {}
    end: Body = {
        "done": True,
        "done_reason": reply.finish,
        "total_duration": int(seconds * 1e9),
        "load_duration": 0,
        "prompt_eval_count": reply.prompt_tokens,
        "prompt_eval_duration": 0,
        "eval_count": reply.completion_tokens,
        "eval_duration": int(seconds * 1e9),
    }
    if not stream:
        return orjson.dumps(common | {"message": message} | logprobs | end)
    first = common | {"message": message, "done": False} | logprobs
    last = common | {"message": {"role": "assistant", "content": ""}} | end
    return orjson.dumps(first) + b"\n" + orjson.dumps(last) + b"\n"


def ollama_loaded(model: str) -> bytes:
    """The answer to a chat without messages, which only loads the model."""
    return orjson.dumps(
        {
            "model": model,
            "created_at": CREATED_ISO,
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "load",
        }
    )


def llama_completion(
    config: JudgeConfig, text: str, logprobs: Logprobs, sent: int, made: int
) -> Body:
    """An answer of llama.cpp's `/completion`, ended by its token limit."""
    rows = [_entry(*pair) for pair in logprobs]
    return {
        "content": text,
        "model": config.model,
        "stop": True,
        "stop_type": "limit",
        "tokens_evaluated": sent,
        "tokens_predicted": made,
        "completion_probabilities": rows,
    }


def echoed(config: JudgeConfig, before: Sequence[str], logprobs: Logprobs, sent: int) -> Body:
    """An answer of `/v1/completions` that repeats the prompt; its first token has no number."""
    tokens = [*before, *(token for token, _ in logprobs)]
    numbers = [-1.0] * len(before) + [logprob for _, logprob in logprobs]
    return {
        "object": "text_completion",
        "created": CREATED,
        "model": config.model,
        "choices": [
            {
                "index": 0,
                "text": "".join(tokens),
                "finish_reason": "length",
                "logprobs": {"tokens": tokens, "token_logprobs": [None, *numbers[1:]]},
            }
        ],
        "usage": {"prompt_tokens": sent, "completion_tokens": 0, "total_tokens": sent},
    }


def reranked(
    config: JudgeConfig, relevances: Sequence[float], top_n: int | None, prompt_tokens: int
) -> Body:
    """Best first as `results`, in the shape that Jina, llama.cpp and vLLM share."""
    places = sorted(range(len(relevances)), key=lambda place: -relevances[place])
    return {
        "model": config.model,
        "object": "list",
        "usage": {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens},
        "results": [
            {"index": place, "relevance_score": relevances[place]} for place in places[:top_n]
        ],
    }


def tei_reranked(relevances: Sequence[float]) -> list[Body]:
    """Best first as a bare list, the shape of Text Embeddings Inference."""
    places = sorted(range(len(relevances)), key=lambda place: -relevances[place])
    return [{"index": place, "score": relevances[place]} for place in places]


def error(kind: Kind, status: int, message: str, **more: str | int) -> Body:
    """An error body; `more` are the fields that a kind of server adds to it."""
    if kind == "ollama":
        return {"error": message}
    return {"error": {"code": status, "message": message, "type": "invalid_request_error"} | more}


def unknown_model(kind: Kind, name: str) -> Body:
    """The 404 for a model that the server does not have."""
    if kind == "ollama":
        return error(kind, 404, f'model "{name}" not found, try pulling it first')
    return error(kind, 404, f"The model `{name}` does not exist.", type="NotFoundError")


def overflow(kind: Kind, tokens: int, context: int) -> Body:
    """The 400 for a prompt of more `tokens` than the `context` of a slot."""
    if kind == "ollama":
        return error(kind, 400, "the input length exceeds the context length")
    if kind == "llama.cpp":
        return error(
            kind,
            400,
            f"request ({tokens} tokens) exceeds the available context size ({context} tokens), "
            "try increasing it",
            type="exceed_context_size_error",
            n_prompt_tokens=tokens,
            n_ctx=context,
        )
    return error(
        kind,
        400,
        f"This model's maximum context length is {context} tokens. However, your request has "
        f"{tokens} tokens. Please reduce the length of the messages.",
        code="context_length_exceeded" if kind == "openai" else 400,
    )


def _logprobs(reply: Reply) -> list[Body]:
    """One entry a token: the first has the distribution, the others only themselves."""
    named = dict(reply.top)
    rows: list[Body] = []
    for place, token in enumerate(reply.tokens):
        own = named.get(token, 0.0) if place == 0 else 0.0
        top: Logprobs = reply.top if place == 0 else ((token, own),)
        rows.append(_entry(token, own) | {"top_logprobs": [_entry(*pair) for pair in top]})
    return rows


def _entry(token: str, logprob: float) -> Body:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
