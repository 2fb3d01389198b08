"""pandas DataFrames in and out: one row a candidate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from batchrank.errors import UsageError
from batchrank.formats.rows import Row
from batchrank.library.rerank import rerank
from batchrank.spec.jobspec import JobSpec

_NEEDED = ("qid", "query", "docid", "text")
_ADDED = ("rank", "score", "first_stage_rank", "first_stage_score", "status")
_KEY = ["qid", "docid"]


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

    Returns the same rows, queries in their order, the best candidate first, with `rank` (from 1),
    `score` (n − rank + 1), `first_stage_rank`, `first_stage_score` and the query's `status`; all
    other columns are kept. Raises UsageError where a column is missing or a docid stands twice in
    a query, and as `rerank`.
    """
    if missing := [name for name in _NEEDED if name not in frame.columns]:
        raise UsageError(f"the frame has no column {', '.join(missing)}")
    keyed = frame.assign(qid=frame["qid"].astype(str), docid=frame["docid"].astype(str))
    if (twice := keyed.duplicated(_KEY)).any():
        qid, docid = keyed.loc[twice, _KEY].iloc[0]
        raise UsageError(f"docid {docid!r} stands twice in query {qid!r} of the frame")
    rows = await rerank(_requests(keyed), model=model, base_url=base_url, store=store, spec=spec)
    kept = keyed.drop(columns=[name for name in _ADDED if name in keyed.columns])
    ranked = pd.DataFrame(_ranked(rows), columns=[*_KEY, *_ADDED])
    return ranked.merge(kept, on=_KEY)[[*kept.columns, *_ADDED]]


def _requests(frame: pd.DataFrame) -> Iterator[dict[str, object]]:
    fields = [name for name in ("title", "text") if name in frame.columns]
    for qid, group in frame.groupby("qid", sort=False):
        records = group.astype(object).where(group.notna(), None).to_dict("records")
        yield {
            "query": {"qid": qid, "text": records[0]["query"]},
            "candidates": [
                {
                    "docid": record["docid"],
                    "score": record.get("score"),
                    "doc": {name: record[name] for name in fields if record[name] is not None},
                }
                for record in records
            ],
        }


def _ranked(rows: list[Row]) -> Iterator[tuple[object, ...]]:
    for row in rows:
        for one in row.ranking:
            places = (one.rank, one.score, one.first_stage_rank, one.first_stage_score)
            yield row.qid, one.docid, *places, row.status
