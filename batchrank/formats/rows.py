"""Writes what became of one query as a JSONL row or as the lines of a TREC run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import orjson

from batchrank.errors import LineError
from batchrank.formats.wording import shown
from batchrank.values import Document


# Not frozen, though nobody changes one: see `Document`.
@dataclass(slots=True)
class RankedDoc:
    """One place of a ranking, its fields in the order of the output.

    `score` falls strictly with `rank` and says nothing about relevance.
    """

    docid: str
    rank: int
    first_stage_rank: int
    score: int
    first_stage_score: float | None = None


@dataclass(slots=True)
class FilteredDoc(RankedDoc):
    """One that no model saw, and the condition that it did not meet."""

    filtered: str = ""


@dataclass(frozen=True, slots=True)
class RowError:
    """Why a query failed."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call of a model as RankLLM keeps it; batchrank keeps what was shown, not the prompt."""

    prompt: None
    shown: tuple[str, ...]
    response: str
    input_token_count: int
    output_token_count: int


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one input line.

    `status` is `ok`, `repaired`, `degraded`, `unranked` or `failed`; `windows` counts windows by
    their status; `line` is the number of the input line; `qid` and `query` are None where a
    failed line hides them; `reduced` rows were ranked without optional passes; `incremental` ones
    build on an earlier ranking. `documents` and `invocations` are there where a format that holds
    texts, or RankLLM's history, is written.
    """

    qid: str | None
    query: str | None
    status: str
    ranking: Sequence[RankedDoc]
    windows: Mapping[str, int]
    calls: int
    prompt_tokens: int
    completion_tokens: int
    model: str | None
    template: str | None
    error: RowError | None
    line: int
    reduced: bool = False
    incremental: bool = False
    documents: Mapping[str, Document] = field(default_factory=dict)
    invocations: Sequence[Invocation] | None = None


def encode_jsonl(row: Row, top_k: int | None = None) -> bytes:
    """Return a row as one line of JSON, the best `top_k` documents only.

    `first_stage_score` is null where the input had none; `error` (`kind`, `message`, `line`)
    and `reduced` and `incremental` stand only in a row that has them.
    """
    value: dict[str, object] = {
        "qid": row.qid,
        "query": row.query,
        "status": row.status,
        "ranking": row.ranking[:top_k],
        "windows": {str(status): count for status, count in row.windows.items()},
        "calls": row.calls,
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "model": row.model,
        "template": row.template,
    }
    if row.reduced:
        value["reduced"] = True
    if row.incremental:
        value["incremental"] = True
    if row.error:
        value["error"] = {**asdict(row.error), "line": row.line}
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        # A lone surrogate, say in the name a server gave its model: write "?" in its place.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=asdict)
        return f"{text}\n".encode(errors="replace")


def encode_trec(row: Row, run_tag: str) -> bytes:
    """Return the lines of a TREC run (`qid Q0 docid rank score tag`), none for an empty ranking.

    White space in `run_tag` becomes `_`. Raises LineError of kind `trec` where the qid is not
    known or an identifier holds white space or NUL, which would shift or cut the columns.
    """
    tag = "_".join(run_tag.split()) or "batchrank"
    if row.qid is None:
        raise LineError("trec", "The qid is not known.")
    places = ((doc.docid, doc.rank, doc.score) for doc in row.ranking)
    return trec_lines(row.qid, places, tag)


def trec_lines(qid: str, places: Iterable[tuple[str, int, float]], tag: str) -> bytes:
    """The lines of a query's docids, ranks and scores; LineError as `encode_trec`."""
    name = _column(qid, "qid", qid)
    lines = (
        f"{name} Q0 {_column(docid, 'docid', qid)} {rank} {score} {tag}\n"
        for docid, rank, score in places
    )
    return "".join(lines).encode(errors="replace")


def _column(value: str, what: str, qid: str) -> str:
    if value.split() == [value] and "\0" not in value:
        return value
    raise LineError("trec", f"A TREC run can't hold the {what} {shown(value)}: white space.", qid)
