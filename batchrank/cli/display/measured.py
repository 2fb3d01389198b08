"""The reports of `eval` and `compare` as text of at most 100 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batchrank.cli.display.columns import names, sentence, table
from batchrank.formats.wording import counted, duration, money
from batchrank.measuring.comparison import (
    Change,
    Comparison,
    Evaluation,
    Likeness,
    QueryChange,
    hurt_and_helped,
)
from batchrank.measuring.cost import Worth
from batchrank.measuring.nights import Spending
from batchrank.measuring.runs import MeasuredRun
from batchrank.metrics.evaluation import NDCG, Scored
from batchrank.metrics.significance import SAMPLES, Test
from batchrank.store.spending import Calls
from batchrank.values import QueryStatus

_CHANGE_HEADER = ("change", "95% interval", "p", "wins", "ties", "losses")


def evaluation_lines(found: Evaluation, *, per_query: bool) -> list[str]:
    """What `eval` found: the table, the queries that changed most, what was left out."""
    run = found.run
    lines = sentence(f"{run.name}: {_judged(found.compared, found.judged)}")
    if found.changes:
        lines += sentence(f"first stage: {found.first_stage}")
        rows = [
            (made.measure, _number(made.before), _number(made.after), *_change_cells(made))
            for made in found.changes
        ]
        header = ("measure", "first stage", "reranked", *_CHANGE_HEADER)
        lines += ["", *table(header, rows), "", *sentence(_method(found.test))]
        lines += _changed_lines(
            found.changes[0].measure,
            found.queries,
            found.texts,
            ("before", "after"),
            per_query=per_query,
        )
    else:
        values = [(name, _number(scored.value)) for name, scored in found.scored.items()]
        lines += ["", *table(("measure", "value"), values)]
        if per_query:
            lines += ["", *_value_lines(found.scored, found.texts)]
    notes = _rest(run)
    if found.first_stage is None:
        way = "measure the run in the store, or give" if run.is_cut else "give"
        notes += sentence(f"no first stage to compare with: {way} --first-stage")
    is_alone = found.first_stage is None
    notes += _absent("the run", found.missing, count=is_alone)
    notes += _absent("the first stage", found.first_missing)
    return [*lines, "", *notes] if notes else lines


def comparison_lines(found: Comparison) -> list[str]:
    """What `compare` found by judgements."""
    letters = _letters(found.runs)
    lines = _named(found.runs)
    values = [
        (name, *(_number(scored[name].value) for scored in found.scored))
        for name in found.scored[0]
    ]
    judged = sentence(f"by {_judged(found.compared, found.judged)}")
    lines += ["", *judged, "", *table(("measure", *letters), values), ""]
    is_corrected = len(letters) > 2
    rows = [
        (
            pair.change.measure,
            f"{letters[pair.first]} to {letters[pair.second]}",
            *_change_cells(pair.change, pair.corrected if is_corrected else None),
        )
        for pair in found.pairs
    ]
    lines += table(("measure", "runs", *_CHANGE_HEADER), rows, texts=2)
    corrected = "; p is corrected over the pairs of a measure (Holm)" if is_corrected else ""
    lines += ["", *sentence(_method(found.test) + corrected)]
    if found.queries:
        lines += _changed_lines(
            found.pairs[0].change.measure, found.queries, found.texts, ("A", "B")
        )
    notes: list[str] = []
    for letter, run, missing in zip(letters, found.runs, found.missing, strict=True):
        notes += [*_rest(run, f"{letter}: "), *_absent(letter, missing)]
    return [*lines, "", *notes] if notes else lines


def likeness_lines(
    runs: Sequence[MeasuredRun], found: Sequence[Likeness], cutoff: int
) -> list[str]:
    """What `compare` found without judgements."""
    letters = _letters(runs)
    rows = [
        (
            f"{letters[pair.first]} and {letters[pair.second]}",
            f"{len(pair.by_query):,}",
            f"{pair.overlap:.4f}",
            "-" if pair.tau is None else f"{pair.tau:.4f}",
            f"{pair.rbo:.4f}",
        )
        for pair in found
    ]
    header = ("runs", "common queries", f"overlap@{cutoff}", "Kendall tau", "RBO")
    notes: list[str] = []
    for letter, run in zip(letters, runs, strict=True):
        others = {qid for other in runs for qid in other.scores}
        if absent := sorted(others - run.scores.keys()):
            queries = counted(len(absent), "query of another run", "queries of other runs")
            notes += sentence(f"{letter} lacks {queries}: {names(absent)}")
        notes += _rest(run, f"{letter}: ")
    lines = [*_named(runs), "", *table(header, rows)]
    return [*lines, "", *notes] if notes else lines


def spending_lines(spending: Spending, queries: int, worth: Worth | None) -> list[str]:
    """What a run of a store took, and what it cost where that is known."""
    rows = [
        _calls_cells("paid by this run", spending.paid, queries),
        _calls_cells("found in the store", spending.kept, queries),
    ]
    header = ("a query", "calls", "prompt tokens", "generated", "model seconds")
    lines = table(header, rows)
    if spending.seconds is not None:
        took = f"took {duration(spending.seconds)}, {spending.seconds / queries:.2f} s a query"
        lines += sentence(f"{took} on the clock{_interruptions(spending)}")
    if gone := spending.gone:
        answers = counted(gone, "answer")
        lines += sentence(
            f"{answers} behind the ranking, asked anew by a later run (--fresh), are gone: what "
            "they took is not known any more"
        )
    if worth is not None:
        per_point = (
            "" if worth.per_point is None else f", {money(worth.per_point)} per +0.01 {NDCG}"
        )
        lines += sentence(
            f"cost {'at least ' if spending.killed else ''}{money(worth.night)} for "
            f"{counted(queries, 'query', 'queries')}, "
            f"{money(worth.per_1000_queries)} per 1,000{per_point}"
        )
        if spending.kept.number:
            lines += sentence("what was found in the store cost earlier runs, and is not in this")
        lines += sentence(worth.sentence)
    return lines


def _interruptions(spending: Spending) -> str:
    if not (earlier := spending.interrupted + spending.repeated):
        return ""
    told = f", {counted(earlier, 'run')} before it that led to its ranking included"
    return (
        f"{told} ({spending.killed} killed: their time is not known)" if spending.killed else told
    )


def _calls_cells(name: str, calls: Calls, queries: int) -> tuple[str, ...]:
    return (
        name,
        f"{calls.number / queries:,.2f}",
        f"{calls.usage.prompt_tokens / queries:,.1f}",
        f"{calls.usage.completion_tokens / queries:,.1f}",
        f"{calls.seconds / queries:,.2f}",
    )


def _changed_lines(
    measure: str,
    queries: Sequence[QueryChange],
    texts: Mapping[str, str],
    sides: tuple[str, str],
    *,
    per_query: bool = False,
) -> list[str]:
    hurt, helped = hurt_and_helped(queries)
    parts: dict[str, Sequence[QueryChange]] = {
        f"most hurt by {measure}": hurt,
        f"most helped by {measure}": helped,
    }
    if per_query:
        parts = {f"all queries by {measure}, the most hurt first": queries}
    lines: list[str] = []
    for title, shown in parts.items():
        lines += ["", f"{title}:" if shown else f"{title}: none"]
        cells = {
            made.qid: (_number(made.before), _number(made.after), f"{made.change:+.4f}")
            for made in shown
        }
        if cells:
            lines += _query_table((*sides, "change"), cells, texts)
    return lines


def _value_lines(scored: Mapping[str, Scored], texts: Mapping[str, str]) -> list[str]:
    measure, values = next(iter(scored.items()))
    ordered = sorted(values.by_query.items(), key=lambda item: (item[1], item[0]))
    return _query_table((measure,), {qid: (_number(value),) for qid, value in ordered}, texts)


def _query_table(
    header: tuple[str, ...], cells: Mapping[str, tuple[str, ...]], texts: Mapping[str, str]
) -> list[str]:
    """One line a query, with its text where any is known."""
    if not any(texts.get(qid) for qid in cells):
        return table(("qid", *header), [(qid, *numbers) for qid, numbers in cells.items()])
    rows = [(qid, texts.get(qid, ""), *numbers) for qid, numbers in cells.items()]
    return table(("qid", "query", *header), rows, texts=2)


def _change_cells(made: Change, corrected: float | None = None) -> tuple[str, ...]:
    difference = made.difference
    return (
        f"{difference.change:+.4f}",
        f"{difference.low:+.4f} to {difference.high:+.4f}",
        f"{difference.p if corrected is None else corrected:.4f}",
        f"{difference.wins:,}",
        f"{difference.ties:,}",
        f"{difference.losses:,}",
    )


def _method(test: Test) -> str:
    named = (
        "paired t-test"
        if test == "t"
        else f"paired randomisation test, {SAMPLES:,} random permutations"
    )
    return f"p: {named}; interval: bootstrap over queries, {SAMPLES:,} samples"


def _rest(run: MeasuredRun, prefix: str = "") -> list[str]:
    """What a reader must know of the rows and queries that do not show in the figures."""
    notes: list[str] = []
    if run.rows:
        counts = ", ".join(
            f"{run.rows[status]:,} {status}" for status in QueryStatus if run.rows[status]
        )
        bad = run.rows[QueryStatus.DEGRADED] + run.rows[QueryStatus.FAILED]
        told = " (degraded and failed ones keep the first stage's order, in part or whole)"
        notes += sentence(
            f"{prefix}{counted(run.rows.total(), 'row')}: {counts}{told if bad else ''}"
        )
    if run.repeated:
        notes += sentence(
            f"{prefix}{counted(run.repeated, 'row')} with a qid that an earlier row has: "
            "the earlier one counts"
        )
    if run.is_cut:
        depth = max(map(len, run.scores.values()), default=0)
        notes += sentence(
            f"{prefix}cut by --top-k to {counted(depth, 'document')} a query: "
            "measures that look deeper are lower than the ranking deserves"
        )
    if run.unwanted:
        queries = counted(len(run.unwanted), "query", "queries")
        notes += sentence(f"{prefix}{queries} without judgements left out: {names(run.unwanted)}")
    return notes


def _judged(compared: int, judged: int) -> str:
    """How many judged queries figures are over, of how many."""
    if compared == judged:
        return counted(judged, "judged query", "judged queries")
    return f"{compared:,} of {judged:,} judged queries, those that are on every side"


def _absent(what: str, missing: Sequence[str], *, count: bool = False) -> list[str]:
    """What is said of judged queries that a run lacks: they `count` 0, or are left out."""
    if not missing:
        return []
    queries = counted(len(missing), "judged query", "judged queries")
    one, more = (
        ("it counts 0", "they count 0") if count else ("it is left out", "they are left out")
    )
    return sentence(
        f"{what} lacks {queries}, {one if len(missing) == 1 else more}: {names(missing)}"
    )


def _named(runs: Sequence[MeasuredRun]) -> list[str]:
    return [
        line
        for letter, run in zip(_letters(runs), runs, strict=True)
        for line in sentence(f"{letter}: {run.name}")
    ]


def _letters(runs: Sequence[MeasuredRun]) -> list[str]:
    """A, B, … as names of runs; at most 26."""
    return [chr(ord("A") + place) for place in range(len(runs))]


def _number(value: float) -> str:
    return f"{value:,.4f}"
