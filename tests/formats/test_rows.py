"""Rows read back as they were, in the promised order of keys, and nothing makes them crash."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.errors import LineError
from batchrank.formats.rows import (
    RankedDoc,
    Row,
    RowError,
    encode_jsonl,
    encode_trec,
)
from batchrank.values import Document, Status
from tests.formats.ranked import ranked_docs

DOCS = (Document("a", "x", score=3.5), Document("b", "y"), Document("c", "z", score=1.0))
RANKING = ranked_docs(("c", "a", "b"), DOCS)
ROW = Row("q", "flea", "ok", RANKING, {Status.OK: 2}, 2, 30, 4, "m", "t-1", None, 5)


def test_scores_fall_with_the_rank() -> None:
    assert (
        RankedDoc("c", 1, 3, 3, 1.0),
        RankedDoc("a", 2, 1, 2, 3.5),
        RankedDoc("b", 3, 2, 1, None),
    ) == RANKING


def test_a_row_is_one_line_with_its_keys_in_order() -> None:
    assert encode_jsonl(ROW, 2) == (
        b'{"qid":"q","query":"flea","status":"ok","ranking":['
        b'{"docid":"c","rank":1,"first_stage_rank":3,"score":3,"first_stage_score":1.0},'
        b'{"docid":"a","rank":2,"first_stage_rank":1,"score":2,"first_stage_score":3.5}],'
        b'"windows":{"ok":2},"calls":2,"prompt_tokens":30,"completion_tokens":4,'
        b'"model":"m","template":"t-1"}\n'
    )


def test_a_missing_first_stage_score_is_null() -> None:
    assert json.loads(encode_jsonl(ROW))["ranking"][2]["first_stage_score"] is None


def test_a_failed_row_says_why_and_where() -> None:
    failed = Row(None, None, "failed", (), {}, 0, 0, 0, None, None, RowError("json", "Torn."), 7)
    got = json.loads(encode_jsonl(failed))
    assert list(got)[-1] == "error"
    assert got["error"] == {"kind": "json", "message": "Torn.", "line": 7}
    assert got["qid"] is None


@pytest.mark.parametrize("top_k", [0, 1, 2, 3, 99, None])
def test_cutting_does_not_change_what_is_left(top_k: int | None) -> None:
    whole = json.loads(encode_jsonl(ROW))["ranking"]
    assert json.loads(encode_jsonl(ROW, top_k))["ranking"] == whole[:top_k]


def test_a_trec_run() -> None:
    assert encode_trec(ROW, "my tag") == (
        b"q Q0 c 1 3 my_tag\nq Q0 a 2 2 my_tag\nq Q0 b 3 1 my_tag\n"
    )
    assert encode_trec(ROW, " ").startswith(b"q Q0 c 1 3 batchrank\n")
    assert encode_trec(replace(ROW, ranking=()), "t") == b""


@pytest.mark.parametrize("bad", ["a b", "a\tb", "a\n", " a", "a\u00a0b", "a\u2028b", "a\0b", ""])
def test_a_trec_run_refuses_what_would_shift_its_columns(bad: str) -> None:
    with pytest.raises(LineError, match="qid") as raised:
        encode_trec(replace(ROW, qid=bad), "t")
    assert raised.value.kind == "trec"
    spaced = replace(ROW, ranking=(RankedDoc(bad, 1, 1, 1),))
    with pytest.raises(LineError, match="docid") as raised:
        encode_trec(spaced, "t")
    assert raised.value.qid == "q"
    with pytest.raises(LineError, match="not known"):
        encode_trec(replace(ROW, qid=None), "t")


def test_lone_surrogates_become_question_marks() -> None:
    odd = "x\ud800é"
    row = replace(ROW, model=odd, ranking=(RankedDoc(odd, 1, 1, 1),), calls=2**70)
    got = json.loads(encode_jsonl(row))
    assert (got["model"], got["ranking"][0]["docid"], got["calls"]) == ("x?é", "x?é", 2**70)
    assert encode_trec(row, odd) == "q Q0 x?é 1 1 x?é\n".encode()


@given(
    qid=st.none() | st.text(),
    docids=st.lists(st.text(), unique=True, max_size=8),
    scores=st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=8),
    error=st.none() | st.builds(RowError, st.text(), st.text()),
    data=st.data(),
)
def test_rows_read_back(
    qid: str | None,
    docids: list[str],
    scores: list[float | None],
    error: RowError | None,
    data: st.DataObject,
) -> None:
    docs = [Document(docid, "", score=score) for docid, score in zip(docids, scores, strict=False)]
    order = tuple(data.draw(st.permutations(docids)))
    row = replace(ROW, qid=qid, ranking=ranked_docs(order, docs), error=error)
    encoded = encode_jsonl(row)
    assert encoded.count(b"\n") == 1
    got = json.loads(encoded)
    assert got["qid"] == qid
    assert tuple(doc["docid"] for doc in got["ranking"]) == order
    assert [docids[doc["first_stage_rank"] - 1] for doc in got["ranking"]] == list(order)
    assert [doc["rank"] + doc["score"] for doc in got["ranking"]] == [len(docs) + 1] * len(docs)
    by_docid = {doc.docid: doc.score for doc in docs}
    assert [doc["first_stage_score"] for doc in got["ranking"]] == [by_docid[d] for d in order]
    assert got.get("error") == (error and {"kind": error.kind, "message": error.message, "line": 5})
