"""DataFrames and PyTerrier pipelines are reranked without losing a row or a column."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import P

from batchrank import JobSpec
from batchrank.errors import UsageError
from batchrank.library.frames import rerank_frame
from batchrank.library.terrier import Reranker
from scripts.judge import JudgeServer
from tests.cli.running import gain, judge, requests, serving

ROWS = requests(queries=3, candidates=12)
SPEC = JobSpec(window_size=6)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with serving(judge(ROWS)) as running:
        yield running


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "qid": row["query"]["qid"],
            "query": row["query"]["text"],
            "docid": one["docid"],
            "text": one["doc"]["text"],
            "score": one["score"],
            "shelf": place,
        }
        for row in ROWS
        for place, one in enumerate(row["candidates"])
    )


def top(frame: pd.DataFrame, docid: str) -> dict[str, list[str]]:
    """The best three of each query."""
    return {f"{qid}": list(group[docid][:3]) for qid, group in frame.groupby("qid", sort=False)}


def expected(frame: pd.DataFrame) -> dict[str, list[str]]:
    """The three with the greatest gain."""
    found = {}
    for qid, group in frame.groupby("qid", sort=False):
        found[f"{qid}"] = sorted(group["docid"], key=lambda one: -gain(f"{qid}", one))[:3]
    return found


async def test_rows_and_columns_are_kept(server: JudgeServer, frame: pd.DataFrame) -> None:
    ranked = await rerank_frame(frame, base_url=server.url, spec=SPEC)
    assert top(ranked, "docid") == expected(frame)
    assert list(ranked["rank"][:12]) == list(range(1, 13))
    assert set(ranked["status"]) == {"ok"}
    together = ranked.merge(frame, on=["qid", "docid"], suffixes=("", "_before"))
    assert len(together) == len(frame)
    assert (together["shelf"] == together["shelf_before"]).all()
    assert (together["first_stage_score"] == together["score_before"]).all()
    assert (together["first_stage_rank"] == together["shelf"] + 1).all()


async def test_what_is_missing_or_double_is_said(server: JudgeServer, frame: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="no column text"):
        await rerank_frame(frame.drop(columns="text"), base_url=server.url)
    with pytest.raises(UsageError, match="'q1-d1' stands twice in query 'q1'"):
        await rerank_frame(pd.concat([frame, frame]), base_url=server.url)


async def test_values_that_are_missing_are_no_text(
    server: JudgeServer, frame: pd.DataFrame
) -> None:
    holes = frame.assign(score=None, title=pd.Series(["A title"]))
    holes["qid"] = holes["qid"].str.removeprefix("q").astype(int)
    ranked = await rerank_frame(holes, base_url=server.url, spec=SPEC)
    assert len(ranked) == len(holes)
    assert ranked["first_stage_score"].isna().all()


# What PyTerrier does with pandas, and advises of experiments.
@pytest.mark.filterwarnings("ignore:The inplace keyword", "ignore:There are shared pipeline")
def test_a_transformer_stands_in_a_pipeline(server: JudgeServer, frame: pd.DataFrame) -> None:
    results = frame.rename(columns={"docid": "docno", "text": "body"})
    results = pt.model.add_ranks(results)
    first_stage = pt.Transformer.from_df(results)
    pipeline = first_stage % 12 >> Reranker(base_url=server.url, spec=SPEC, text_field="body")
    queries = results[["qid", "query"]].drop_duplicates()
    found = pipeline.transform(queries)
    assert top(found, "docno") == expected(frame)
    assert list(found.groupby("qid")["rank"].min()) == [0, 0, 0]
    assert found.groupby("qid")["score"].apply(lambda one: one.is_monotonic_decreasing).all()
    qrels = pd.DataFrame(
        {"qid": qid, "docno": docid, "label": 1}
        for qid, best in expected(frame).items()
        for docid in best
    )
    before, after = pt.Experiment([first_stage, pipeline], queries, qrels, [P @ 3])["P@3"]
    assert before < after == 1.0
