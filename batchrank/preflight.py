"""Proves with a few calls, before the first window, what a job relies on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from batchrank.answers import read
from batchrank.answers.forms import max_tokens
from batchrank.backends.base import Backend
from batchrank.backoff import persist
from batchrank.connection import Connection
from batchrank.errors import NoServerError, ServerError
from batchrank.fit import MIN_DOC_TOKENS, Fit, fit_context, tokens_needed
from batchrank.jobspec import JobSpec
from batchrank.prompts.render import Cut, QueryTexts, text_of
from batchrank.prompts.template import Template
from batchrank.prompts.tokens import TokenCounter, estimate
from batchrank.readings.base import Means
from batchrank.readings.named import READERS
from batchrank.sanity import CHANCE, sanity_requests
from batchrank.values import Answer, ChatPrompt, Form, Prompt, Status, Window

THINKING_TOKENS = 4096
"""Room to reason where thinking is on; a window's answer itself takes few tokens."""
_PROBE_DOCUMENTS = 9


@dataclass(frozen=True, slots=True)
class Profile:
    """What a server was found to be: the part of a job's identity that is not in its spec."""

    kind: str
    model: str
    identity: str
    form: Form
    context: int | None
    slots: int | None
    window_size: int
    max_doc_tokens: int
    token_ratio: float
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """For the store."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Profile:
        """From the store."""
        fields = {**stored, "form": Form(stored["form"]), "warnings": tuple(stored["warnings"])}
        return cls(**fields)


def answer_tokens(spec: JobSpec) -> int:
    """The most tokens an answer may take, in the wordiest form."""
    longest = max(max_tokens(form, spec.window_size, spec.window_size) for form in Form)
    return longest + thinking_tokens(spec)


def thinking_tokens(spec: JobSpec) -> int:
    """Room for reasoning before an answer."""
    return THINKING_TOKENS if spec.thinking == "on" else 0


async def preflight(connection: Connection, spec: JobSpec, template: Template) -> Profile:
    """Find the form that is really constrained, fit windows to the context, try a known set.

    Raises NoServerError where the server can't do the job: no answer, an answer that is nothing but
    reasoning, a context too small.
    """
    backend, info = connection.backend, connection.info
    warnings: list[str] = []
    fit = _fitted(spec, info.context, warnings)
    try:
        form = await _constrained_form(backend, info.forms, spec.timeout)
        probe = await _try_sanity(backend, spec, template, form)
    except ServerError as error:
        raise NoServerError(f"{backend.url}: {error}") from error
    warnings += probe.warnings
    if form is Form.TEXT:
        warnings.append(
            "the server does not constrain answers: the model writes free text that may need repair"
        )
    return Profile(
        kind=info.kind,
        model=info.model,
        identity=info.identity,
        form=form,
        context=info.context,
        slots=info.slots,
        window_size=fit.window_size,
        max_doc_tokens=fit.max_doc_tokens,
        token_ratio=probe.token_ratio,
        warnings=tuple(warnings),
    )


def _fitted(spec: JobSpec, context: int | None, warnings: list[str]) -> Fit:
    wanted = Fit(spec.window_size, spec.max_doc_tokens)
    if context is None:
        return wanted
    answer = answer_tokens(spec)
    fit = fit_context(wanted, answer, context)
    need = tokens_needed(wanted, answer)
    if fit == wanted:
        return wanted
    short = (
        f"a slot of the server holds {context} tokens and a window of {wanted.window_size} "
        f"documents of {wanted.max_doc_tokens} tokens needs {need}"
    )
    if fit is None or spec.fit == "refuse":
        raise NoServerError(
            f"{short}; start the server with a larger context, or choose a smaller --window-size "
            "or --max-doc-tokens"
        )
    how = f"documents are cut to {fit.max_doc_tokens} tokens"
    if fit.window_size < wanted.window_size:
        how += f" and windows to {fit.window_size} documents"
    warnings.append(f"{short}: {how} (not below {MIN_DOC_TOKENS} tokens a document)")
    return fit


async def _constrained_form(backend: Backend, forms: tuple[Form, ...], seconds: float) -> Form:
    """The first form the server enforces: asked for a word, it can only write an identifier."""
    for form in forms:
        if form is Form.TEXT:
            break
        limit = max_tokens(form, _PROBE_DOCUMENTS, 1)
        prompt = ChatPrompt("Write the word hello.", _PROBE_DOCUMENTS, 1, form, limit)
        try:
            answer = await _send(backend, prompt, seconds)
        except ServerError as error:
            if error.retryable or error.exit_code == NoServerError.exit_code:
                raise
            continue  # some servers refuse a field they don't know: then it is not their form
        if read(answer, _PROBE_DOCUMENTS, 1).status is Status.OK:
            return form
    return Form.TEXT


@dataclass(frozen=True, slots=True)
class _Sanity:
    token_ratio: float
    warnings: list[str]


async def _try_sanity(backend: Backend, spec: JobSpec, template: Template, form: Form) -> _Sanity:
    """Rank the known set as the job will rank; say what is wrong with what comes back."""
    requests = sanity_requests()
    reader = READERS["full"]
    means = Means(template, form, thinking_tokens(spec))
    cut = Cut(TokenCounter(), MIN_DOC_TOKENS)
    windows = []
    prompts = []
    for request, _ in requests:
        docids = tuple(document.docid for document in request.candidates)
        window = Window(docids, docids, len(docids))
        windows.append(window)
        prompts.append(reader.prompt(QueryTexts(request, len(docids), cut), window, means))
    answers = await asyncio.gather(*(_send(backend, prompt, spec.timeout) for prompt in prompts))
    if spec.thinking == "off" and all(a.reasoning and not a.text.strip() for a in answers):
        raise NoServerError(
            f"{backend.url}: the model returns only its reasoning and no answer, although thinking "
            "is switched off in every request; switch it off at the server, or use --thinking on"
        )
    ranks = []
    unusable = []
    for window, answer, (_, right) in zip(windows, answers, requests, strict=True):
        outcome = reader.read(window, answer)
        if outcome.status is Status.FALLBACK:
            unusable.append(answer)
        ranks.append(outcome.order.index(right) + 1)
    warnings = []
    mean = sum(ranks) / len(ranks)
    if unusable:
        warnings.append(
            f"{len(unusable)} of {len(answers)} trial answers can't be read, for example "
            f"{unusable[0].text[:80]!r}"
        )
    if mean >= CHANCE:
        warnings.append(
            f"on a trial of {len(ranks)} easy queries the model ranks no better than chance: the "
            f"right one of 4 documents came at rank {mean:.1f} on average (chance is {CHANCE})"
        )
    counted = sum(answer.usage.prompt_tokens for answer in answers)
    estimated = sum(estimate(text_of(prompt)) for prompt in prompts)
    # A server that counts nothing is taken to count as estimated; two digits keep keys stable.
    ratio = round(min(3.0, max(0.5, counted / estimated)), 2) if counted else 1.0
    return _Sanity(ratio, warnings)


async def _send(backend: Backend, prompt: Prompt, seconds: float) -> Answer:
    call = backend.encode(prompt)
    return await persist(
        lambda: backend.send(call, seconds),
        asyncio.sleep,
        Random(),  # noqa: S311 - jitter, no secret
    )
