"""Reranks one query: filters and cuts its texts, drives the strategy, counts its windows."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from batchrank.calls import Usage
from batchrank.logs import about
from batchrank.prompts.render import Cut, QueryTexts
from batchrank.ranking.outcomes import Asked
from batchrank.selection.filtering import restored, without
from batchrank.selection.selection import Selection
from batchrank.serving.slots import Priority
from batchrank.strategies.base import Round, Strategy, drive
from batchrank.strategies.incremental import Merging, building_on
from batchrank.values import (
    Lineage,
    Permutation,
    QueryStatus,
    RankedQuery,
    Request,
    Tally,
    Window,
)

_log = logging.getLogger(__name__)
_ANSWER_CHARACTERS = 500
"""So much of an unusable answer stands in the log; all of it is in the store."""


def _unheard() -> None:
    """For who does not mind when windows are sent."""


class AsksRounds(Protocol):
    """What a reranker needs of an asker."""

    async def ask_round(
        self,
        windows: Sequence[Window],
        texts: QueryTexts,
        priority: Priority,
        sent: Callable[[], None],
    ) -> list[Asked]:
        """One outcome a window, in order; `sent` is called each time that one goes to a server."""


class Reranker:
    """Reranks queries of one job; holds nothing of any of them afterwards."""

    def __init__(
        self,
        strategy: Strategy,
        merging: Merging,
        depth: int,
        cut: Cut,
        asker: AsksRounds,
        selection: Selection,
    ) -> None:
        self._strategy = strategy
        self._merging = merging
        self._depth = depth
        self._cut = cut
        self._asker = asker
        self._selection = selection

    async def rank(
        self,
        request: Request,
        sequence: int,
        lineage: Lineage | None = None,
        sent: Callable[[], None] = _unheard,
    ) -> RankedQuery:
        """Rank one request; of two that are open, the smaller `sequence` goes first.

        `lineage` says what earlier ranking it builds on, if any; `sent` is called each time that a
        window of it goes to a server. Raises StoppedError where the job
        stops before every window has its outcome: such a query has no ranking, and the next run
        goes on with the answers it already has.
        """
        removed = self._selection.removed(request.candidates)
        left = without(request, removed)
        ranked = _settled(left, self._depth, lineage)
        if ranked is None:
            ranked = await self._ask(left, sequence, lineage, sent)
        return restored(ranked, request, removed)

    async def _ask(
        self, request: Request, sequence: int, lineage: Lineage | None, sent: Callable[[], None]
    ) -> RankedQuery:
        docids = request.docids[: self._depth]
        strategy = building_on(lineage, self._strategy, self._merging, docids)
        texts = QueryTexts(request, self._depth, self._cut)
        asked: list[Asked] = []

        async def ask(windows: Round, number: int) -> list[Permutation]:
            about(window=len(asked) + 1)
            outcomes = await self._asker.ask_round(windows, texts, (-number, sequence), sent)
            for window, outcome in enumerate(outcomes, len(asked) + 1):
                _log_trouble(window, outcome)
            asked.extend(outcomes)
            return [outcome.permutation for outcome in outcomes]

        ranking = await drive(strategy(docids), ask)
        place = {docid: position for position, docid in enumerate(docids)}
        order = tuple([place[docid] for docid in ranking])
        ranked = _ranked(request, asked)
        if self._selection.arranges and ranked.status is not QueryStatus.FAILED:
            order = await asyncio.to_thread(self._selection.arranged, order, request.candidates)
        return replace(ranked, order=_with_the_rest(order, request), lineage=lineage)


def settled(
    request: Request, depth: int, lineage: Lineage | None, selection: Selection
) -> RankedQuery | None:
    """The outcome of a request that takes no call: nothing to ask, or nothing new to ask.

    None for all others.
    """
    removed = selection.removed(request.candidates)
    known = _settled(without(request, removed), depth, lineage)
    return known and restored(known, request, removed)


def _settled(request: Request, depth: int, lineage: Lineage | None) -> RankedQuery | None:
    if not needs_ranking(request, depth):
        return unranked(request)
    if lineage is None or len(lineage.earlier) < len(request.candidates[:depth]):
        return None
    order = _with_the_rest(lineage.earlier, request)
    return replace(unranked(request), order=order, status=QueryStatus.OK, lineage=lineage)


def _with_the_rest(order: tuple[int, ...], request: Request) -> tuple[int, ...]:
    """An order of the candidates that were reranked, and below them those that were not."""
    return order + tuple(range(len(order), len(request.candidates)))


def needs_ranking(request: Request, depth: int) -> bool:
    """Whether there is anything to ask: two candidates at least, and one with a text."""
    head = request.candidates[:depth]
    return len(head) > 1 and any(d.text.strip() or (d.title or "").strip() for d in head)


def unranked(request: Request) -> RankedQuery:
    """A query without anything to ask, in first-stage order."""
    return RankedQuery(
        qid=request.query.qid,
        query=request.query.text,
        docids=request.docids,
        scores=tuple([document.score for document in request.candidates]),
        order=tuple(range(len(request.candidates))),
        status=QueryStatus.UNRANKED,
    )


def failed(request: Request, kind: str, message: str) -> RankedQuery:
    """A query that can't be ranked, in first-stage order."""
    return replace(unranked(request), status=QueryStatus.FAILED, error_kind=kind, error=message)


def tally(asked: Sequence[Asked]) -> Tally:
    """Count windows by how they ended."""
    return Tally(
        **Counter(str(one.permutation.status) for one in asked),
        thin=sum(one.permutation.is_thin(one.wanted) for one in asked),
        unmoved=sum(map(_is_unmoved, asked)),
    )


def _is_unmoved(asked: Asked) -> bool:
    """Whether an answer repeats the order of the prompt; one document alone can't move."""
    named, order = asked.permutation.named, asked.permutation.order
    return (
        asked.permutation.is_usable
        and len(order) > 1
        and order[:named] == asked.window.shown[:named]
    )


def _log_trouble(number: int, asked: Asked) -> None:
    """Log a window that brought no usable ranking, with the reason and the raw answer's start."""
    status = asked.permutation.status
    if asked.permutation.is_usable:
        return
    told = {"window": number, "reason": asked.fault or ", ".join(asked.permutation.notes)}
    if asked.endpoint:
        told["endpoint"] = asked.endpoint
    if asked.used is not None:
        told["answer"] = asked.used.answer.text[:_ANSWER_CHARACTERS]
    _log.warning("window: %s, the prior order stands", status, extra=told)


def _ranked(request: Request, asked: Sequence[Asked]) -> RankedQuery:
    counts = tally(asked)
    error_kind = error = None
    if not counts.windows:
        status = QueryStatus.UNRANKED
    elif counts.error == counts.windows:
        status = QueryStatus.FAILED
        error_kind, error = asked[0].fault_kind, asked[0].fault
    elif counts.fallback or counts.error:
        status = QueryStatus.DEGRADED
    elif counts.repaired:
        status = QueryStatus.REPAIRED
    else:
        status = QueryStatus.OK
    distinct = {stored.number: stored.answer for one in asked for stored in one.consulted}
    usage = sum((answer.usage for answer in distinct.values()), Usage())
    return replace(
        unranked(request),
        status=status,
        tally=counts,
        answers=tuple(one.used.number if one.used else 0 for one in asked),
        faults=tuple(one.fault for one in asked if one.fault is not None),
        again=tuple(place for place, one in enumerate(asked) if one.is_second),
        calls=len(distinct),
        usage=usage,
        error_kind=error_kind,
        error=error,
    )
