"""Ranks a few known queries as a stage of a job will rank, and says what is wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from batchrank.backends.base import Backend
from batchrank.calls import Answer, Prompt
from batchrank.errors import UnfitServerError
from batchrank.prompts.render import Cut, QueryTexts, text_of
from batchrank.prompts.tokens import TokenCounter, estimate
from batchrank.readings.base import Way
from batchrank.serving.fit import MIN_DOC_TOKENS
from batchrank.serving.sanity import CHANCE, sanity_requests
from batchrank.strategies.base import Round, drive
from batchrank.strategies.pointwise import pointwise
from batchrank.strategies.single import single
from batchrank.values import Permutation, Request, Status


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """`token_ratio` is the server's count of tokens over the estimate, 0 where it counts none.

    `readable`: at least one answer could be read.
    """

    token_ratio: float
    warnings: tuple[str, ...]
    readable: bool


@dataclass(slots=True)
class _Heard:
    """The prompts, answers and outcomes of all windows."""

    prompts: list[Prompt]
    answers: list[Answer]
    outcomes: list[Permutation]


async def rehearse(
    backend: Backend, way: Way, *, send: Callable[[Prompt], Awaitable[Answer]]
) -> Rehearsal:
    """Rank the known set in one way.

    Raises UnfitServerError where the server returns nothing but reasoning, ValueError where it
    can't be asked in this way; ServerError as `send`.
    """
    heard = _Heard([], [], [])
    ranks = await asyncio.gather(
        *(_rank(way, request, right, send, heard) for request, right in sanity_requests())
    )
    thinks = all(answer.reasoning and not answer.text.strip() for answer in heard.answers)
    if thinks and not way.means.thinking_tokens:
        raise UnfitServerError(
            f"{backend.url}: the model returns only its reasoning and no answer, although thinking "
            "is switched off in every request; switch it off at the server, or use --thinking on"
        )
    warnings = []
    unusable = [
        answer
        for answer, outcome in zip(heard.answers, heard.outcomes, strict=True)
        if outcome.status is Status.FALLBACK
    ]
    if unusable:
        warnings.append(
            f"{len(unusable)} of {len(heard.answers)} trial answers can't be read, for example "
            f"{unusable[0].text[:80]!r}"
        )
    mean = sum(ranks) / len(ranks)
    if mean >= CHANCE:
        warnings.append(
            f"on a trial of {len(ranks)} easy queries the model ranks no better than chance: the "
            f"right one of 4 documents came at rank {mean:.1f} on average (chance is {CHANCE})"
        )
    counted = sum(answer.usage.prompt_tokens for answer in heard.answers)
    estimated = sum(estimate(text_of(prompt)) for prompt in heard.prompts)
    # Two digits keep keys stable.
    ratio = round(min(3.0, max(0.5, counted / estimated)), 2) if counted else 0.0
    return Rehearsal(ratio, tuple(warnings), len(unusable) < len(heard.answers))


async def _rank(
    way: Way,
    request: Request,
    right: str,
    send: Callable[[Prompt], Awaitable[Answer]],
    heard: _Heard,
) -> int:
    """The rank of the right document."""
    docids = request.docids
    texts = QueryTexts(request, len(docids), Cut(TokenCounter(), MIN_DOC_TOKENS))

    async def ask(windows: Round, _number: int) -> list[Permutation]:
        prompts = [way.reader.prompt(texts, window, way.means) for window in windows]
        answers = await asyncio.gather(*(send(prompt) for prompt in prompts))
        outcomes = [
            way.reader.read(window, answer) for window, answer in zip(windows, answers, strict=True)
        ]
        heard.prompts += prompts
        heard.answers += answers
        heard.outcomes += outcomes
        return outcomes

    strategy = pointwise(way.reader.most or 1) if way.reader.scores else single(None, len(docids))
    return (await drive(strategy(docids), ask)).index(right) + 1
