"""Turns a status and a body that report a failure into the typed error."""

from __future__ import annotations

import re
from dataclasses import dataclass

from batchrank.backends.loose import Json, count, dig, excerpt, parse, text
from batchrank.errors import (
    BadResponseError,
    ContextOverflowError,
    FatalServerError,
    OverloadedError,
    RefusedError,
    ServerError,
    UnavailableError,
)

_OVERFLOW_TYPES = {"exceed_context_size_error", "context_length_exceeded"}
_OVERFLOW = re.compile(
    r"context (?:length|size|window)|when context the overflows|prompt is too long"
    r"|(?:maximum|max) (?:model|allowed|input|prompt) length",
    re.IGNORECASE,
)
# llama.cpp says this to every running request when its slots together have filled a shared
# cache: the same prompt may fit a moment later.
_CACHE_FULL = re.compile(r"context size has been exceeded", re.IGNORECASE)
_CONTEXT = re.compile(
    r"(?:context (?:length|size|window)|(?:maximum|max) (?:model|allowed|input|prompt) length)"
    r"\D{0,30}?(\d{1,9})",
    re.IGNORECASE,
)
_PROMPT_TOKENS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(\d{1,9}) (?:tokens )?(?:in|from) the (?:input )?(?:messages|prompt)",
        r"(\d{1,9}) input tokens",
        r"(?:resulted in|request \(|input length \(|input \(|the first) ?(\d{1,9}) tokens",
        r"prompt \(length (\d{1,9})\)",
        r"requested (?:a total of )?(\d{1,9}) tokens",
    )
)
_UNKNOWN_MODEL = re.compile(
    r"model_not_found|no models? (?:is |are )?loaded"
    r"|\bmodel\b.{0,200}?(?:not found|does(?: not|n't) exist|not exist|not loaded)",
    re.IGNORECASE | re.DOTALL,
)
# "error loading model" is a model that will never load, not one that is on its way.
_LOADING = re.compile(
    r"(?<!error )(?<!failed )loading model|model is (?:still |being |currently )*load",
    re.IGNORECASE,
)
_BUSY = re.compile(r"\bbusy\b|overload|no slots|too many|queue", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Complaint:
    """What an error body says: the message, its type and code, and numbers where given."""

    message: str
    words: frozenset[str] = frozenset()
    code: int | None = None
    prompt_tokens: int | None = None
    context: int | None = None


def failure(status: int, body: bytes, retry_after: float | None = None) -> ServerError:
    """The error that an HTTP status of 400 or more and its body report.

    `retry_after` are the seconds of the Retry-After header. A body that is no JSON is never
    read for anything but its first characters.
    """
    value = parse(body)
    if not isinstance(value, dict):
        return _classify(status, _Complaint(""), excerpt(body), retry_after, is_json=False)
    complaint = _complaint(value) or _complaint({"error": value}) or _Complaint("")
    return _classify(status, complaint, excerpt(complaint.message or body), retry_after)


def failure_in(value: Json) -> ServerError | None:
    """The error that an object sent with status 200 reports; None where it reports none."""
    complaint = _complaint(value)
    if complaint is None:
        return None
    status = complaint.code if complaint.code and 400 <= complaint.code < 600 else 200
    return _classify(status, complaint, excerpt(complaint.message))


def _complaint(value: Json) -> _Complaint | None:
    """Read `{"error": ...}` (text or object) and `{"object": "error", "message": ...}`."""
    error = value if value.get("object") == "error" else value.get("error")
    if not error:
        return None
    if not isinstance(error, dict):
        return _Complaint(error if isinstance(error, str) else str(error))
    message = error.get("message") or error.get("detail") or error
    code = error.get("code")
    digits = text(code) if re.fullmatch(r"\d{3}", text(code)) else None
    return _Complaint(
        message=message if isinstance(message, str) else str(message),
        words=frozenset({text(error.get("type")), text(code)}),
        code=int(digits) if digits else count(code),
        prompt_tokens=count(dig(error, "n_prompt_tokens")),
        context=count(dig(error, "n_ctx")),
    )


def _classify(
    status: int,
    complaint: _Complaint,
    shown: str,
    retry_after: float | None = None,
    *,
    is_json: bool = True,
) -> ServerError:
    told = f"The server answered {status}: {shown or 'nothing'}"
    if status in (401, 403):
        # The body may repeat the key, or a part of it.
        return FatalServerError(f"The server wants an API key, or another one ({status}).")
    if _is_overflow(status, complaint):
        return _overflow(told, complaint)
    if status in (400, 404) and _is_unknown_model(complaint):
        return FatalServerError(told)
    if status in (408, 429) or (status >= 500 and status != 501):  # 501 is "never"
        return _unavailable(status, told, retry_after)
    if status == 200 or (status == 404 and not is_json):
        # A proxy's 404 page stands in for a server that is being restarted.
        return BadResponseError(told)
    return RefusedError(told)


def _is_overflow(status: int, complaint: _Complaint) -> bool:
    if complaint.words & _OVERFLOW_TYPES:
        return True
    if status == 429 or (status >= 500 and _CACHE_FULL.search(complaint.message)):
        return False
    return _OVERFLOW.search(complaint.message) is not None


def _is_unknown_model(complaint: _Complaint) -> bool:
    return any(_UNKNOWN_MODEL.search(word) for word in (complaint.message, *complaint.words))


def _overflow(told: str, complaint: _Complaint) -> ContextOverflowError:
    found = (pattern.search(complaint.message) for pattern in _PROMPT_TOKENS)
    tokens = next((int(match[1]) for match in found if match), None)
    context = _CONTEXT.search(complaint.message)
    return ContextOverflowError(
        told,
        prompt_tokens=tokens if complaint.prompt_tokens is None else complaint.prompt_tokens,
        context=complaint.context or (int(context[1]) if context else None),
    )


def _unavailable(status: int, told: str, retry_after: float | None) -> UnavailableError:
    if _LOADING.search(told):
        return UnavailableError(told, retry_after=retry_after, loading=True)
    if status in (429, 503) or _BUSY.search(told):
        return OverloadedError(told, retry_after=retry_after)
    return UnavailableError(told, retry_after=retry_after)
