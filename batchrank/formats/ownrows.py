"""Reads a row of batchrank's own output again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from batchrank.errors import LineError
from batchrank.formats.rows import FilteredDoc, RankedDoc, Row, RowError


class _Place(BaseModel):
    docid: str
    rank: int
    first_stage_rank: int
    score: int
    first_stage_score: float | None = None
    filtered: str | None = None


class _Error(BaseModel):
    kind: str
    message: str
    line: int


class _Result(BaseModel):
    qid: str | None
    query: str | None
    status: str
    ranking: list[_Place]
    windows: dict[str, int]
    calls: int
    prompt_tokens: int
    completion_tokens: int
    model: str | None
    template: str | None
    reduced: bool = False
    incremental: bool = False
    error: _Error | None = None


def parse_row(line: Mapping[str, Any], number: int) -> Row:
    """The row that a JSON object is, from line `number`; LineError of kind `result` where none."""
    try:
        found = _Result.model_validate(dict(line))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = f"The result can't be read: {where}: {first['msg']}."
        qid = line.get("qid")
        raise LineError("result", message, qid if isinstance(qid, str) else None) from None
    return Row(
        qid=found.qid,
        query=found.query,
        status=found.status,
        ranking=[_place(one) for one in found.ranking],
        windows=found.windows,
        calls=found.calls,
        prompt_tokens=found.prompt_tokens,
        completion_tokens=found.completion_tokens,
        model=found.model,
        template=found.template,
        error=RowError(found.error.kind, found.error.message) if found.error else None,
        line=found.error.line if found.error else number,
        reduced=found.reduced,
        incremental=found.incremental,
    )


def _place(one: _Place) -> RankedDoc:
    at = (one.docid, one.rank, one.first_stage_rank, one.score, one.first_stage_score)
    return RankedDoc(*at) if one.filtered is None else FilteredDoc(*at, one.filtered)
