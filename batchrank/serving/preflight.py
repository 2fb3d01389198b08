"""Proves with a few calls, before the first window, what a job relies on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from random import Random
from typing import Any

from batchrank.backends.base import Backend
from batchrank.calls import Answer, Form, Prompt
from batchrank.errors import NoServerError, ServerError, UnfitServerError
from batchrank.readings.first_token import LETTERS
from batchrank.serving.backoff import persist
from batchrank.serving.connection import Connection
from batchrank.serving.fit import MIN_DOC_TOKENS, Fit, fit_context, tokens_needed
from batchrank.serving.probe import probe, proves
from batchrank.serving.rehearsal import rehearse
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import Templates
from batchrank.spec.stagespec import StageSpec
from batchrank.spec.ways import answer_tokens, make_ways

_PATIENT_SECONDS = 600.0
_WRITTEN = frozenset(("winners", "full", "graded"))
"""Readings of what is written in a constrained form."""
_FIRST_TOKEN = frozenset(("logprobs", "yesno"))
_TOP_LOGPROBS = (40, 20, 10, 5)
"""Numbers of alternatives to ask for, the most first: vLLM gives 20, llama.cpp any number."""


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
    top_logprobs: int = 0
    warnings: tuple[str, ...] = ()
    readable: bool = True
    """Whether the model's answers to the known queries could be read, at least one a stage."""

    @property
    def letters(self) -> int:
        """The most documents of a window that is read by its first token."""
        return min(self.top_logprobs, LETTERS) if self.top_logprobs else LETTERS

    def refusal(self, max_fallback: float) -> str | None:
        """Why a job whose gate is `max_fallback` is not to be started; None where it may be."""
        if self.readable or max_fallback >= 1:
            return None
        return (
            "no answer of the trial can be read as a ranking: take an instruction-tuned model, or "
            "another answer or template; a max_fallback of 100% starts the job all the same"
        )

    def as_dict(self) -> dict[str, object]:
        """For the store."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Profile:
        """From the store."""
        fields = {**stored, "form": Form(stored["form"]), "warnings": tuple(stored["warnings"])}
        return cls(**fields)


async def preflight(connection: Connection, spec: JobSpec, templates: Templates) -> Profile:
    """Prove what each stage's reading relies on, fit windows to the context, try a known set.

    Of the connection's first server, which is awake.
    Raises UnfitServerError where the server can't do the job: an answer that is nothing but
    reasoning, no log-probabilities, likelihoods or relevances where they are wanted, a context too
    small; NoServerError where it can't answer now.
    """
    backend, info = connection.backend, connection.info
    warnings: list[str] = []
    fit = _fitted(spec, info.context, warnings)
    answers = {stage.answer for stage in spec.stages}
    form, top_logprobs = Form.TEXT, 0
    try:
        if answers & _WRITTEN:
            form = await _constrained_form(backend, info.forms, spec.timeout)
        if answers & _FIRST_TOKEN:
            top_logprobs = await _alternatives(backend, spec.timeout)
        rehearsals = [
            await rehearse(backend, way, send=partial(_send, backend, seconds=spec.timeout))
            for way in make_ways(spec, templates, form, top_logprobs)
        ]
    except ServerError as error:
        raise NoServerError.at(backend.url, error) from error
    except ValueError as error:
        raise UnfitServerError(f"{backend.url}: {error}") from error
    for stage, rehearsal in zip(spec.stages, rehearsals, strict=True):
        name = f"answer {stage.answer}: " if len(rehearsals) > 1 else ""
        warnings += [name + warning for warning in rehearsal.warnings]
    if answers & _WRITTEN and form is Form.TEXT:
        warnings.append(
            "the server does not constrain answers: the model writes free text that may need repair"
        )
    profile = Profile(
        kind=info.kind,
        model=info.model,
        identity=info.identity,
        form=form,
        context=info.context,
        slots=info.slots,
        window_size=fit.window_size,
        max_doc_tokens=fit.max_doc_tokens,
        token_ratio=next((one.token_ratio for one in rehearsals if one.token_ratio), 1.0),
        top_logprobs=top_logprobs,
        readable=all(one.readable for one in rehearsals),
    )
    for stage in spec.stages:
        if stage.answer == "logprobs":
            _check_letters(stage, profile, backend.url, warnings)
    return replace(profile, warnings=tuple(warnings))


def _check_letters(stage: StageSpec, profile: Profile, url: str, warnings: list[str]) -> None:
    """Warn where windows become smaller, or UnfitServerError where one is to show all."""
    letters = profile.letters
    if stage.asked_window <= letters or profile.window_size < letters:
        return  # windows made smaller by the context were told of
    if stage.shows_all:
        raise UnfitServerError(
            f"{url} returns {letters} alternatives of a token, and strategy single shows all "
            f"candidates in one window, up to depth {stage.depth}: set depth to {letters} or less, "
            "or take another strategy or answer"
        )
    warnings.append(
        f"windows hold {letters} documents: more letters, or alternatives of one token, are not to "
        f"be had{_left_by_single(stage, letters)}"
    )


def _left_by_single(stage: StageSpec, size: int) -> str:
    """The end of a warning about windows of `size`, where a strategy has but one; "" else."""
    if stage.strategy != "single" or size >= stage.asked_window:
        return ""
    return f"; strategy single ranks the first {size} candidates of a query, not the others"


def _fitted(spec: JobSpec, context: int | None, warnings: list[str]) -> Fit:
    wanted = Fit(spec.largest, spec.max_doc_tokens)
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
        raise UnfitServerError(
            f"{short}; start the server with a larger context, or choose a smaller window_size "
            "or max_doc_tokens"
        )
    how = f"documents are cut to {fit.max_doc_tokens} tokens"
    if fit.window_size < wanted.window_size:
        how += f" and windows to {fit.window_size} documents"
    left = max(_left_by_single(stage, fit.window_size) for stage in spec.stages)
    warnings.append(f"{short}: {how} (not below {MIN_DOC_TOKENS} tokens a document){left}")
    return fit


async def _constrained_form(backend: Backend, forms: tuple[Form, ...], seconds: float) -> Form:
    """The first form the server enforces: asked for a word, it can only write an identifier."""
    for form in forms:
        if form is Form.TEXT:
            break
        try:
            asked = probe(form)
            answer = await _send(backend, asked, seconds)
        except ServerError as error:
            if error.retryable or error.exit_code == NoServerError.exit_code:
                raise
            continue  # some servers refuse a field they don't know: then it is not their form
        if proves(answer, asked):
            return form
    return Form.TEXT


async def _alternatives(backend: Backend, seconds: float) -> int:
    """How many alternatives of a token the server returns; UnfitServerError where none or one."""
    for wanted in _TOP_LOGPROBS:
        prompt = replace(probe(Form.TEXT), max_tokens=1, top_logprobs=wanted)
        try:
            answer = await _send(backend, prompt, seconds)
        except ServerError as error:
            if error.retryable or error.exit_code == NoServerError.exit_code:
                raise
            continue  # more than this server gives
        if len(answer.scored) > 1:  # of one alone nothing can be told apart
            return min(wanted, len(answer.scored))
    raise UnfitServerError(
        f"{backend.url} returns fewer than two log-probabilities of a token, which answer logprobs "
        "and yesno read; use answer winners, or graded"
    )


async def _send(backend: Backend, prompt: Prompt, seconds: float) -> Answer:
    call = backend.encode(prompt)
    # Several at a time may take a slow machine longer than one.
    patience = (max(seconds, min(seconds * 2.0**more, _PATIENT_SECONDS)) for more in count())
    return await persist(
        lambda: backend.send(call, next(patience)),
        asyncio.sleep,
        Random(),  # noqa: S311 - jitter, no secret
    )
