"""The few queries of a run that are worth a look, with their lists and windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from batchrank.measuring.comparison import Evaluation, QueryChange, hurt_and_helped
from batchrank.measuring.runs import MeasuredRun
from batchrank.metrics.evaluation import Qrels
from batchrank.ranking.replay import Replayed, replay
from batchrank.reporting.facts import TOP, Asked, Listed, QueryFacts
from batchrank.reporting.movement import fresh, tau
from batchrank.store.queries import find_query
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import RankedQuery

HELPED = "most helped"
HURT = "most hurt"
MOVED = "moved most"
FELL_BACK = "fell back"
CHANGED = "changed most since the other run"
FIRST_STAGE = "First stage"
NOW = "This run"

_WINDOWS = 8
_SAID = 1500
_DOCID = 120
_TEXT = 400
_MESSAGE = 300


@dataclass(slots=True)
class Picked:
    """Queries by qid, each with why it was picked, in the order in which they are shown."""

    why: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, qids: Iterable[str]) -> None:
        """Pick these queries for one more reason."""
        for qid in qids:
            reasons = self.why.setdefault(qid, [])
            if reason not in reasons:
                reasons.append(reason)


@dataclass(frozen=True, slots=True)
class Beside:
    """What the lists of a query are shown beside: judgements, and another run with its name."""

    qrels: Qrels | None = None
    evaluation: Evaluation | None = None
    other: MeasuredRun | None = None


def pick_by_judgement(picked: Picked, evaluation: Evaluation) -> None:
    """Pick the queries that were most helped and most hurt."""
    hurt, helped = hurt_and_helped(evaluation.queries)
    for reason, changes in ((HELPED, helped), (HURT, hurt)):
        picked.add(reason, (made.qid for made in changes))


async def look_at(store: Store, run: Run, picked: Picked, beside: Beside) -> tuple[QueryFacts, ...]:
    """What is shown of the queries that were picked, as far as the run has them."""
    changes: Mapping[str, QueryChange] = {}
    if beside.evaluation is not None:
        changes = {made.qid: made for made in beside.evaluation.queries}
    found = []
    for qid, why in picked.why.items():
        rows = await find_query(store, run.id, qid)
        if rows:
            line, ranked = rows[0]
            windows = await replay(ranked, run.settings, store)
            lists = _lists(ranked, beside)
            found.append(_drawn(line, ranked, why, lists, changes.get(qid), windows))
    return tuple(found)


def cut(text: str, most: int) -> str:
    """At most so many characters of a text."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _drawn(
    line: int,
    ranked: RankedQuery,
    why: Sequence[str],
    lists: Mapping[str, tuple[Listed, ...]],
    change: QueryChange | None,
    windows: Sequence[Replayed],
) -> QueryFacts:
    # Windows that went wrong are what one looks for.
    worst = sorted(range(len(windows)), key=lambda place: windows[place].permutation.status == "ok")
    shown = sorted(worst[:_WINDOWS])
    return QueryFacts(
        qid=cut(ranked.qid, _DOCID),
        text=cut(ranked.query, _TEXT),
        line=line,
        status=ranked.status,
        why=tuple(why),
        lists=lists,
        before=change.before if change else None,
        after=change.after if change else None,
        fresh=fresh(ranked),
        tau=tau(ranked),
        error=cut(f"{ranked.error_kind}: {ranked.error}", _MESSAGE) if ranked.error else None,
        windows=tuple(_asked(place + 1, windows[place]) for place in shown),
        windows_left=len(windows) - len(shown),
    )


def _lists(ranked: RankedQuery, beside: Beside) -> dict[str, tuple[Listed, ...]]:
    places = {docid: place for place, docid in enumerate(ranked.docids, 1)}
    grades = (beside.qrels or {}).get(ranked.qid, {})

    def listed(docids: Iterable[str]) -> tuple[Listed, ...]:
        return tuple(Listed(cut(one, _DOCID), places.get(one), grades.get(one)) for one in docids)

    lists = {FIRST_STAGE: listed(ranked.docids[:TOP])}
    if beside.other is not None and ranked.qid in beside.other.scores:
        lists[cut(beside.other.name, _DOCID)] = listed(beside.other.ranking(ranked.qid)[:TOP])
    lists[NOW] = listed(ranked.ranking[:TOP])
    return lists


def _asked(number: int, window: Replayed) -> Asked:
    made = window.permutation
    said = window.answer.text if window.answer is not None else window.fault or "no answer"
    return Asked(
        number=number,
        round=window.round,
        status=made.status,
        notes=made.notes,
        shown=tuple(cut(docid, _DOCID) for docid in window.window.shown),
        named=tuple(cut(docid, _DOCID) for docid in made.order[: made.named]),
        said=cut(said, _SAID),
        is_gone=window.is_gone,
    )
