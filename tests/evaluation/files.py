"""Small runs and judgements written for the tests, as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

Ranked = Mapping[str, Sequence[str]]


def trec(path: Path, ranked: Ranked) -> Path:
    """A TREC run with falling scores."""
    path.write_text(
        "".join(
            f"{qid} Q0 {docid} {rank} {len(docids) - rank + 1} tag\n"
            for qid, docids in ranked.items()
            for rank, docid in enumerate(docids, 1)
        )
    )
    return path


def qrels(path: Path, grades: Mapping[str, Mapping[str, int]]) -> Path:
    """TREC qrels."""
    path.write_text(
        "".join(
            f"{qid} 0 {docid} {grade}\n"
            for qid, documents in grades.items()
            for docid, grade in documents.items()
        )
    )
    return path


def row(
    qid: str,
    ranking: Sequence[str],
    first_stage: Sequence[str],
    *,
    status: str = "ok",
    query: str = "what was asked",
) -> dict[str, object]:
    """A row of batchrank's output; a ranking shorter than the first stage was cut."""
    return {
        "qid": qid,
        "query": query,
        "status": status,
        "ranking": [
            {
                "docid": docid,
                "rank": rank,
                "first_stage_rank": first_stage.index(docid) + 1,
                "score": len(first_stage) - rank + 1,
                "first_stage_score": None,
            }
            for rank, docid in enumerate(ranking, 1)
        ],
    }


def jsonl(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """Rows, one a line."""
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path
