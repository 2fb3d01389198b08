"""RankLLM's own package reads what is written for it, where it is installed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from batchrank.formats.encoders.formats import make_encoder
from batchrank.formats.records import read_entry
from batchrank.formats.rows import Invocation, RankedDoc, Row
from batchrank.formats.sources.source import Source
from batchrank.values import Document, OutputFormat
from tests.formats.sources.reading import values_of

FORMS: dict[OutputFormat, str] = {"rankllm": "jsonl", "rankllm-json": "json"}
REQUEST = {
    "query": {"qid": 7, "text": "why"},
    "candidates": [{"docid": "d1", "text": "x"}, {"docid": "d2", "title": "T", "text": "y"}],
}
RANKING = [RankedDoc("d2", 1, 2, 2, 0.5), RankedDoc("d1", 2, 1, 1, None)]
ROW = Row(
    *("7", "why", "ok", RANKING, {"ok": 1}, 1, 9, 4, "m", "t", None, 1),
    documents={"d1": Document("d1", "x"), "d2": Document("d2", "y", "T")},
    invocations=[Invocation(None, ("d1", "d2"), "[2] > [1]", 9, 4)],
)


@pytest.fixture
def rankllm() -> Any:
    """Its module of data, which needs no torch (`pip install --no-deps rank-llm dacite`)."""
    try:
        return importlib.import_module("rank_llm.data")
    except ImportError:
        # Its dependencies want torch and vLLM: no test environment has to have it.
        pytest.skip("rank-llm is not installed: pip install --no-deps rank-llm dacite")


@pytest.mark.parametrize("form", FORMS)
def test_rankllm_reads_our_requests_and_results(
    rankllm: Any, tmp_path: Path, form: OutputFormat
) -> None:
    for record, docids in (
        (read_entry(orjson.dumps(REQUEST))[0], ["d1", "d2"]),
        (ROW, ["d2", "d1"]),
    ):
        encoder = make_encoder(form, "")
        path = tmp_path / f"out.{FORMS[form]}"
        path.write_bytes(encoder.add(record) + encoder.end())
        (request,) = rankllm.read_requests_from_file(str(path))
        assert (request.query.qid, request.query.text) == ("7", "why")
        assert [one.docid for one in request.candidates] == docids
        assert [one.score for one in request.candidates] == [2.0, 1.0]
        assert {one.doc["text"] for one in request.candidates} == {"x", "y"}


def test_what_rankllm_writes_is_read(rankllm: Any, tmp_path: Path) -> None:
    candidates = [rankllm.Candidate("d1", 2.5, {"title": "T", "text": "x"})]
    writer = rankllm.DataWriter([rankllm.Result(rankllm.Query("why", 7), candidates, [])])
    writer.write_in_jsonl_format(str(tmp_path / "out.jsonl"))
    writer.write_in_json_format(str(tmp_path / "out.json"))
    for name in ("out.jsonl", "out.json"):
        (value,) = values_of(Source(str(tmp_path / name)))
        assert value["query"] == {"text": "why", "qid": 7}
        assert value["candidates"] == [
            {"docid": "d1", "score": 2.5, "doc": {"title": "T", "text": "x"}}
        ]


@pytest.mark.parametrize("form", FORMS)
def test_the_history_is_in_its_words(form: OutputFormat) -> None:
    encoder = make_encoder(form, "")
    value = orjson.loads(encoder.add(ROW) + encoder.end())
    (result,) = value if isinstance(value, list) else [value]
    (call,) = result["invocations_history"]
    assert (call["response"], call["shown"]) == ("[2] > [1]", ["d1", "d2"])
    assert (call["prompt"], call["input_token_count"], call["output_token_count"]) == (None, 9, 4)
