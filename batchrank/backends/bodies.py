"""Reads an answer out of the bytes of a chat server, whatever their dialect."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from batchrank.backends.failures import failure_in
from batchrank.backends.loose import Json, count, dig, excerpt, number, parse, rows, text
from batchrank.calls import Answer, Usage
from batchrank.errors import BadResponseError

_CUT = {"length", "max_tokens", "max_length", "limit"}
_BROKEN_OFF = {"error", "abort", "aborted", "cancelled"}
_SSE_FIELDS = (b":", b"event:", b"id:", b"retry:")


@dataclass(frozen=True, slots=True)
class _Piece:
    """One JSON object of an answer: the whole of it, or one chunk of a stream."""

    text: str
    reasoning: str
    finish: str | None
    first: tuple[tuple[str, float], ...] = ()
    """Of the first token the likeliest alternatives, where they were asked for."""


def read_answer(body: bytes) -> Answer:
    """The answer in `body`: OpenAI chat, Ollama chat or generate, whole or as a stream.

    The body decides, not its content type. Empty content is an answer with text "". The answer's
    `seconds` are 0; who sent the request knows them.

    Raises:
        BadResponseError: it is no answer: HTML, torn, empty, no choices, another shape.
        ServerError: it is an error object; the error it reports.
    """
    parts, ended = _parts(body)
    pieces: list[_Piece] = []
    usage = Usage()
    for part in parts:
        error = failure_in(part)
        if error is not None:
            raise error
        pieces += _piece(part)
        usage = usage_in(part) or usage
    if not pieces:
        raise BadResponseError(f"The server's answer holds no choice: {excerpt(body)}")
    finish = next((piece.finish for piece in reversed(pieces) if piece.finish), None)
    if finish is None and not ended:
        raise BadResponseError(f"The server's answer broke off: {excerpt(body)}")
    if finish in _BROKEN_OFF:
        raise BadResponseError(f"The server gave up ({finish}): {excerpt(body)}")
    return Answer(
        text="".join(piece.text for piece in pieces),
        reasoning="".join(piece.reasoning for piece in pieces),
        finish="length" if finish in _CUT else finish or "stop",
        usage=usage,
        scored=next((piece.first for piece in pieces if piece.first), ()),
        model=text(parts[0].get("model")),
    )


def read_object(body: bytes) -> Json:
    """The one JSON object in `body`.

    Raises:
        BadResponseError: there is none.
        ServerError: it is an error object; the error it reports.
    """
    value = parse(body)
    if not isinstance(value, dict):
        raise _no_json(body)
    error = failure_in(value)
    if error is not None:
        raise error
    return value


def _parts(body: bytes) -> tuple[list[Json], bool]:
    """The JSON objects of a body, and whether it is known to be whole."""
    value = parse(body)
    if isinstance(value, dict):
        return [value], value.get("done") is not False
    lines = [line.strip() for line in body.splitlines()]
    chunks = [
        line.removeprefix(b"data:").removeprefix(b"error:").strip()
        for line in lines
        if line and not line.startswith(_SSE_FIELDS)
    ]
    values = [parse(chunk) for chunk in chunks if chunk != b"[DONE]"]
    parts = [value for value in values if isinstance(value, dict)]
    if not parts or len(parts) < len(values):
        raise _no_json(body)
    return parts, b"[DONE]" in chunks


def _no_json(body: bytes) -> BadResponseError:
    if not body.strip():
        return BadResponseError("The server answered with an empty body.")
    return BadResponseError(f"The server's answer is no JSON object: {excerpt(body)}")


def _piece(part: Json) -> list[_Piece]:
    """The piece of the answer in one object; none in a chunk without choices (usage only)."""
    choices = part.get("choices")
    if isinstance(choices, list):
        return [_openai_piece(choice) for choice in rows(choices)[:1]]
    message = part.get("message")
    finish = text(part.get("done_reason")) or ("stop" if part.get("done") is True else None)
    if isinstance(message, dict):
        first = _alternatives(part.get("logprobs"))
        return [_Piece(_content(message.get("content")), _reasoning(message), finish, first)]
    if isinstance(part.get("response"), str):
        return [_Piece(text(part["response"]), _reasoning(part), finish)]
    return []


def _openai_piece(choice: Json) -> _Piece:
    error = failure_in(choice)
    if error is not None:
        raise error
    message = choice.get("message") or choice.get("delta") or {}
    if not isinstance(message, dict) or not ({"message", "delta"} & choice.keys()):
        raise BadResponseError(f"A choice holds no message: {_shown(choice)}")
    return _Piece(
        _content(message.get("content")),
        _reasoning(message),
        text(choice.get("finish_reason")) or None,
        _alternatives(dig(choice, "logprobs", "content")),
    )


def _alternatives(tokens: object) -> tuple[tuple[str, float], ...]:
    return tuple(
        (text(row.get("token")), logprob)
        for first in rows(tokens)[:1]
        for row in rows(first.get("top_logprobs"))
        if (logprob := number(row.get("logprob"))) is not None
    )


def _content(content: object) -> str:
    """Content as text, null, or a list of typed parts of which the texts count."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(
            part if isinstance(part, str) else text(part.get("text"))
            for part in content
            if isinstance(part, str) or (isinstance(part, dict) and part.get("type") == "text")
        )
    raise BadResponseError(f"The server's answer is no text: {_shown(content)}")


def _shown(value: object) -> str:
    return excerpt(orjson.dumps(value))


def _reasoning(message: Json) -> str:
    """Reasoning, under the first of the names it goes by that holds any."""
    names = ("reasoning_content", "reasoning", "thinking")
    return next((text(message[name]) for name in names if text(message.get(name))), "")


def usage_in(part: Json) -> Usage | None:
    """The tokens that an answer says it took; None where it says nothing."""
    usage = part.get("usage")
    if isinstance(usage, dict):
        sent, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
    elif "prompt_eval_count" in part or "eval_count" in part:
        sent, made = part.get("prompt_eval_count"), part.get("eval_count")
    else:
        return None
    return Usage(count(sent) or 0, count(made) or 0)
