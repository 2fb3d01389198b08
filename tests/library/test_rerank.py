"""A program's requests are ranked with the same guarantees as a file's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import batchrank
from batchrank import Document, JobSpec, Query, Request, Row
from batchrank.errors import (
    BatchrankError,
    NoServerError,
    RejectedError,
    StoppedError,
    UsageError,
)
from batchrank.library.settings import UNFOLLOWED, in_python
from scripts.judge import JudgeServer
from tests.cli.running import gain, judge, requests, serving, windows

ROWS = requests(queries=5, candidates=12)
SPEC = JobSpec(window_size=6)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with serving(judge(ROWS)) as running:
        yield running


def best(row: Row) -> list[str]:
    return [document.docid for document in row.ranking[:3]]


def expected(qid: str) -> list[str]:
    """The three with the greatest gain: what a perfect judge puts on top."""
    found = next(row for row in ROWS if row["query"]["qid"] == qid)
    docids = [candidate["docid"] for candidate in found["candidates"]]
    return sorted(docids, key=lambda docid: -gain(qid, docid))[:3]


async def test_mappings_come_back_ranked_in_their_order(server: JudgeServer) -> None:
    ranked = await batchrank.rerank(ROWS, base_url=server.url, spec=SPEC)
    assert [row.qid for row in ranked] == [row["query"]["qid"] for row in ROWS]
    assert [best(row) for row in ranked] == [expected(row["query"]["qid"]) for row in ROWS]
    assert {row.status for row in ranked} == {"ok"}


async def test_requests_of_its_own_kind_are_taken_whole(server: JudgeServer) -> None:
    row = ROWS[0]
    documents = tuple(
        Document(one["docid"], one["doc"]["text"], score=one["score"]) for one in row["candidates"]
    )
    request = Request(Query(row["query"]["qid"], row["query"]["text"]), documents)
    (ranked,) = await batchrank.rerank([request], base_url=server.url, spec=SPEC)
    assert best(ranked) == expected("q1")
    scores = {one.docid: one.first_stage_score for one in ranked.ranking}
    assert scores == {document.docid: document.score for document in documents}


async def test_a_stream_gives_rows_while_requests_still_come(server: JudgeServer) -> None:
    first_is_back = asyncio.Event()

    async def asked() -> AsyncIterator[dict[str, object]]:
        yield ROWS[0]
        await first_is_back.wait()
        for row in ROWS[1:]:
            yield row

    seen = []
    async for row in batchrank.rerank_stream(asked(), base_url=server.url, spec=SPEC):
        seen.append(row.qid)
        first_is_back.set()
    assert seen == ["q1", "q2", "q3", "q4", "q5"]


async def test_a_store_is_asked_before_a_model(tmp_path: Path, server: JudgeServer) -> None:
    store = tmp_path / "kept.sqlite"
    first = await batchrank.rerank(ROWS, base_url=server.url, store=store, spec=SPEC)
    asked = len(windows(server))
    again = await batchrank.rerank(ROWS, base_url=server.url, store=store, spec=SPEC)
    assert len(windows(server)) == asked > 0
    assert [row.ranking for row in again] == [row.ranking for row in first]


async def test_what_is_left_early_goes_on_from_its_store(
    tmp_path: Path, server: JudgeServer
) -> None:
    store = tmp_path / "kept.sqlite"
    spec = SPEC.model_copy(update={"concurrency": 1})
    stream = batchrank.rerank_stream(ROWS, base_url=server.url, store=store, spec=spec)
    async with aclosing(stream):
        async for row in stream:
            assert row.qid == "q1"
            break
    left = {task.get_coro() for task in asyncio.all_tasks()} - {asyncio.current_task()}
    await batchrank.rerank(ROWS, base_url=server.url, store=store, spec=spec)
    assert len(left) <= 1
    assert len(set(windows(server))) == len(windows(server))


async def test_gates_hold() -> None:
    bad_judge = judge(ROWS, malformed_rate=1.0, malformed=("empty",), sound_trials=True)
    with serving(bad_judge) as bad, pytest.raises(RejectedError, match="windows"):
        await batchrank.rerank(ROWS, base_url=bad.url, spec=SPEC)


async def test_what_is_wrong_is_raised_as_what_it_is(tmp_path: Path, server: JudgeServer) -> None:
    with pytest.raises(NoServerError):
        await batchrank.rerank(ROWS, base_url="http://127.0.0.1:9", spec=SPEC)
    with pytest.raises(UsageError, match="nor a folder for it"):
        await batchrank.rerank(ROWS, base_url=server.url, store=tmp_path / "no" / "where")


async def test_a_failing_iterator_is_the_programs_own_error(server: JudgeServer) -> None:
    def asked() -> Iterator[dict[str, object]]:
        yield ROWS[0]
        raise LookupError("the database is gone")

    with pytest.raises(LookupError, match="the database is gone"):
        await batchrank.rerank(asked(), base_url=server.url, spec=SPEC)


async def test_a_request_that_can_not_be_used_is_a_failed_row(server: JudgeServer) -> None:
    spec = SPEC.model_copy(update={"max_failed": 1.0})
    ranked = await batchrank.rerank(
        [ROWS[0], {"query": {"qid": "x"}}], base_url=server.url, spec=spec
    )
    assert [row.status for row in ranked] == ["ok", "failed"]
    assert ranked[1].error is not None


async def test_nothing_asked_is_nothing_ranked(server: JudgeServer) -> None:
    assert await batchrank.rerank([], base_url=server.url, spec=SPEC) == []


async def test_the_time_may_be_up(server: JudgeServer) -> None:
    spec = SPEC.model_copy(update={"time_limit": "0s"})
    with pytest.raises(StoppedError):
        await batchrank.rerank(ROWS, base_url=server.url, spec=spec)


UNFOLLOWED_VALUES: dict[str, object] = {
    "input": "log.jsonl",
    "format": "json",
    "corpus": "corpus.jsonl",
    "topics": "topics.tsv",
    "run_file": "bm25.trec",
    "shard": "0/2",
    "output": "out.jsonl",
    "output_format": "trec",
    "publish": {"target": "sqlite:cache.sqlite"},
    "report": "report.html",
    "dashboard": True,
    "dashboard_address": "8765",
    "metrics_port": "9464",
    "metrics_textfile": "night.prom",
    "log_format": "json",
}


@pytest.mark.parametrize("name", UNFOLLOWED_VALUES)
async def test_a_setting_that_a_call_does_not_follow_is_named(
    server: JudgeServer, name: str
) -> None:
    assert set(UNFOLLOWED_VALUES) == set(UNFOLLOWED)
    spec = JobSpec.model_validate({name: UNFOLLOWED_VALUES[name], "window_size": 6})
    with pytest.raises(UsageError, match=f"^the spec sets {name}, which only"):
        await batchrank.rerank(ROWS, base_url=server.url, spec=spec)
    assert server.calls == []


async def test_all_that_a_call_does_not_follow_is_named_at_once(server: JudgeServer) -> None:
    spec = JobSpec.model_validate({"input": "a", "report": "b", "log_format": "text"})
    with pytest.raises(UsageError, match="sets input, report, which"):
        await batchrank.rerank(ROWS, base_url=server.url, spec=spec)


async def test_the_settings_that_count_requests_and_documents_are_followed(
    server: JudgeServer,
) -> None:
    spec = SPEC.model_copy(update={"limit": 2, "top_k": 3})
    ranked = await batchrank.rerank(ROWS, base_url=server.url, spec=spec)
    assert [best(row) for row in ranked] == [expected("q1"), expected("q2")]
    assert [len(row.ranking) for row in ranked] == [3, 3]


async def test_errors_and_warnings_name_settings_not_flags(
    server: JudgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "batchrank")
    said = []
    for url, more in (
        ("http://127.0.0.1:9", {}),
        (server.url, {"model": "another"}),
        (server.url, {"api_key_env": "BATCHRANK_NO_SUCH_KEY"}),
        (server.url, {"strategy": "pairwise"}),
        (server.url, {"max_failed": 0.0}),
        (server.url, {"time_limit": "0s"}),
        (server.url, {"gate_qrels": Path("/dev/null")}),
    ):
        spec = SPEC.model_copy(update=more)
        with pytest.raises(BatchrankError) as raised:
            await batchrank.rerank([*ROWS, {"query": {"qid": "x"}}], base_url=url, spec=spec)
        said.append(str(raised.value))
    assert "name another with base_url" in said[0]
    said += [record.getMessage() for record in caplog.records]
    assert [one for one in said if "--" in one] == []


@pytest.mark.parametrize("name", JobSpec.model_fields)
def test_every_flag_is_a_setting_in_python(name: str) -> None:
    flag = f"--{name.replace('_', '-')}"
    assert in_python(f"name another with {flag} X; `run {flag}`") == (
        f"name another with {name} X; `run {name}`"
    )
    assert in_python("see --help and a--b") == "see --help and a--b"


async def test_what_is_odd_about_requests_goes_to_the_log(
    server: JudgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    await batchrank.rerank(
        [ROWS[0], {"query": {"qid": "bare", "text": "who"}, "candidates": []}],
        base_url=server.url,
        spec=SPEC,
    )
    (said,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert said.startswith("1 query ('bare'): there are no candidates")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (ROWS[0], "you gave one request: put it in a list"),
        (Request(Query("q", "a"), ()), "you gave one request: put it in a list"),
        ("queries.jsonl", r"the requests are 'queries.jsonl' \(str\): give an iterable"),
        (None, r"the requests are None \(NoneType\): give an iterable"),
        (5, r"the requests are 5 \(int\): give an iterable"),
        (pd.DataFrame({"qid": ["a"]}), "rerank_frame takes one"),
    ],
)
async def test_what_is_no_iterable_of_requests_is_refused(
    server: JudgeServer, given: Any, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        await batchrank.rerank(given, base_url=server.url, spec=SPEC)
    assert server.calls == []


async def test_whatever_can_t_be_used_is_one_failed_row(server: JudgeServer) -> None:
    def asked(text: object) -> dict[str, object]:
        return {"query": {"qid": "x", "text": "a"}, "candidates": [{"docid": "d", "text": text}]}

    given: list[Any] = ["a", b"a", 1, None, ("q", ["a"]), [ROWS[0]], {}, {"query": object()}]
    given += [asked(b"t"), asked({1}), asked(7), ROWS[0]]
    spec = SPEC.model_copy(update={"max_failed": 1.0})
    *failed, last = await batchrank.rerank(given, base_url=server.url, spec=spec)
    assert (last.qid, last.status) == ("q1", "ok")
    assert {row.status for row in failed} == {"failed"}
    assert [row.qid for row in failed[-3:]] == ["x", "x", "x"]
    messages = [row.error.message for row in failed if row.error is not None]
    assert messages[0] == "The request is 'a' (str), expected a Request or a mapping."
    assert "can't be written as JSON: Type is not JSON serializable: bytes" in messages[8]
    assert "The text of 'd' is 7, expected a string." in messages[10]


@pytest.mark.parametrize("score", [float("nan"), np.float32("inf"), np.float64("nan")])
async def test_a_score_that_is_no_number_is_null_and_told(
    server: JudgeServer, caplog: pytest.LogCaptureFixture, score: Any
) -> None:
    candidates = [{**ROWS[0]["candidates"][0], "score": score}, *ROWS[0]["candidates"][1:]]
    (row,) = await batchrank.rerank(
        [{**ROWS[0], "candidates": candidates}], base_url=server.url, spec=SPEC
    )
    scores = {one.first_stage_rank: one.first_stage_score for one in row.ranking}
    assert (scores[1], scores[2]) == (None, candidates[1]["score"])
    assert "a score that is NaN or Infinity is no number" in caplog.text


async def test_a_rejection_has_the_rows_that_were_paid_for(server: JudgeServer) -> None:
    with pytest.raises(RejectedError) as raised:
        await batchrank.rerank([*ROWS, "a"], base_url=server.url, spec=SPEC)  # type: ignore[list-item]
    assert [row.status for row in raised.value.rows] == ["ok"] * 5 + ["failed"]
    assert best(raised.value.rows[0]) == expected("q1")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"strategy": "nope"}, "strategy must be 'segmented'"),
        ({"strategi": "sliding"}, "strategi is no setting"),
        ({"depth": "deep"}, "depth must be a whole number, got 'deep'"),
        ({"degrade": True}, "degrade needs a deadline"),
        ({"stage": [{"foo": 1}]}, "stage 1 foo is no setting"),
        ({"engine": "ray"}, "engine ray needs one base_url"),
        ({"backend": "ollama", "strategy": "pointwise", "answer": "likelihood"}, "Ollama can't"),
    ],
)
def test_a_spec_that_can_t_be_is_a_usage_error(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=f"^{said}"):
        JobSpec(**settings)


async def test_a_rejection_gives_an_example(server: JudgeServer) -> None:
    with pytest.raises(RejectedError, match=r"failed.* \(for example line 2: .*has no qid"):
        await batchrank.rerank(
            [ROWS[0], {"query": "who", "documents": ["a"]}], base_url=server.url, spec=SPEC
        )
