"""pandas DataFrames in and out: one row a candidate."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from pathlib import Path

import pandas as pd

from batchrank.errors import UsageError
from batchrank.formats.rows import Row
from batchrank.formats.wording import counted, shown
from batchrank.library.rerank import rerank
from batchrank.spec.jobspec import JobSpec

_NEEDED = ("qid", "query", "docid", "text")
_ADDED = ("rank", "score", "first_stage_rank", "first_stage_score", "status")
_Record = dict[str, object]
_log = logging.getLogger("batchrank")


async def rerank_frame(
    frame: pd.DataFrame,
    *,
    model: str | None = None,
    base_url: str | None = None,
    store: Path | str | None = None,
    spec: JobSpec | None = None,
) -> pd.DataFrame:
    """Rerank a frame with columns `qid`, `query`, `docid`, `text` and, where there are, `title`
    and `score`; candidates of a query stand in first-stage order.

    Returns the same rows, queries in their order, the best candidate first (of a spec with `top_k`
    the best so many), with `rank` (from 1), `score` (n − rank + 1), `first_stage_rank`,
    `first_stage_score` (NaN where there is none) and the query's `status`; all other columns are
    kept. A missing text is an empty one, and is warned of in the log.

    Raises UsageError where it is no frame, a column is missing or stands twice, an identifier or a
    query's text is missing or no text, a query has two texts or a docid stands twice in it, and as
    `rerank`.
    """
    _check_columns(frame)
    groups = _queries(frame)
    rows = await rerank(
        (_request(group) for group in groups.values()),
        model=model,
        base_url=base_url,
        store=store,
        spec=spec,
    )
    places = [list(group) for group in groups.values()]
    return _ranked(frame, rows, places)


def _check_columns(frame: object) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise UsageError(f"the frame is {frame!r:.60} ({type(frame).__name__}): give a DataFrame")
    names = list(map(str, frame.columns))
    if missing := [name for name in _NEEDED if name not in names]:
        raise UsageError(
            f"the frame has no column {', '.join(missing)}, only {', '.join(names) or 'none'}"
        )
    if twice := [name for name in (*_NEEDED, "title", "score") if names.count(name) > 1]:
        raise UsageError(f"the frame has more than one column {twice[0]}")


def _queries(frame: pd.DataFrame) -> dict[str, dict[int, _Record]]:
    """The candidates of each qid by the place of their row, checked."""
    columns = [name for name in (*_NEEDED, "title", "score") if name in frame.columns]
    known = frame[columns].astype(object)
    known = known.where(known.notna(), None)
    groups: dict[str, dict[int, _Record]] = {}
    taken: set[tuple[str, str]] = set()
    without_text: list[str] = []
    for place, values in enumerate(known.itertuples(index=False, name=None)):
        record: _Record = dict(zip(columns, values, strict=True))
        where = f"row {place} of the frame"
        qid = _identifier(record, "qid", where)
        docid = _identifier(record, "docid", f"{where} (query {shown(qid)})")
        where = f"docid {shown(docid)} of query {shown(qid)}"
        if (qid, docid) in taken:
            raise UsageError(f"docid {shown(docid)} stands twice in query {shown(qid)}")
        taken.add((qid, docid))
        _check_values(record, where)
        if record["text"] is None and record.get("title") is None:
            without_text.append(where)
        group = groups.setdefault(qid, {})
        first = next(iter(group.values()), record)
        if record["query"] != first["query"]:
            raise UsageError(
                f"query {shown(qid)} of the frame has two texts, {shown(first['query'])} and "
                f"{shown(record['query'])}"
            )
        group[place] = {**record, "qid": qid, "docid": docid}
    if without_text:
        _log.warning(
            "%s of the frame without text, taken as empty: %s%s",
            counted(len(without_text), "document"),
            ", ".join(without_text[:3]),
            ", …" if without_text[3:] else "",
        )
    return groups


def _identifier(record: _Record, name: str, where: str) -> str:
    value = record[name]
    if isinstance(value, bool) or not isinstance(value, str | Integral) or not str(value).strip():
        raise UsageError(f"{where}: the {name} is {_told(value)}, expected a text or an integer")
    return str(value)


def _check_values(record: _Record, where: str) -> None:
    query = record["query"]
    if not isinstance(query, str) or not query.strip():
        raise UsageError(f"{where}: the query is {_told(query)}, expected a text")
    for name in ("text", "title"):
        value = record.get(name)
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{where}: the {name} is {_told(value)}, expected a text")
    score = record.get("score")
    if score is not None and (isinstance(score, bool) or not isinstance(score, Real)):
        raise UsageError(f"{where}: the score is {_told(score)}, expected a number")


def _told(value: object) -> str:
    if value is None:
        return "missing"
    return shown(value) if isinstance(value, str) else f"{value!r:.60} ({type(value).__name__})"


def _request(group: dict[int, _Record]) -> _Record:
    first = next(iter(group.values()))
    return {
        "query": {"qid": first["qid"], "text": first["query"]},
        "candidates": [
            {
                "docid": record["docid"],
                "score": record.get("score"),
                "doc": {
                    name: record[name] for name in ("title", "text") if record.get(name) is not None
                },
            }
            for record in group.values()
        ],
    }


def _ranked(frame: pd.DataFrame, rows: Sequence[Row], places: Sequence[list[int]]) -> pd.DataFrame:
    """The frame's rows in their new order; `places` are those of each query's candidates."""
    added = pd.DataFrame(_values(rows), columns=list(_ADDED))
    added = added.astype({"first_stage_score": float})
    order = [
        group[one.first_stage_rank - 1]
        for row, group in zip(rows, places, strict=True)
        for one in row.ranking
    ]
    kept = frame.drop(columns=[name for name in _ADDED if name in frame.columns])
    return pd.concat([kept.iloc[order].reset_index(drop=True), added], axis="columns")


def _values(rows: Sequence[Row]) -> Iterator[tuple[object, ...]]:
    for row in rows:
        for one in row.ranking:
            places = (one.rank, one.score, one.first_stage_rank, one.first_stage_score)
            yield *places, row.status
