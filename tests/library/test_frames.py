"""DataFrames and PyTerrier pipelines are reranked without losing a row or a column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


async def test_values_that_are_missing_are_no_text(
    server: JudgeServer, frame: pd.DataFrame
) -> None:
    holes = frame.assign(score=None, title=pd.Series(["A title"]))
    holes["qid"] = holes["qid"].str.removeprefix("q").astype(int)
    ranked = await rerank_frame(holes, base_url=server.url, spec=SPEC)
    assert len(ranked) == len(holes)
    assert ranked["first_stage_score"].isna().all()
    assert ranked["qid"].dtype == holes["qid"].dtype


def put(frame: pd.DataFrame, column: str, value: object, row: int = 1) -> pd.DataFrame:
    """The frame with one value changed, whatever its type."""
    values = frame[column].astype(object).tolist()
    values[row] = value
    return frame.assign(**{column: pd.Series(values, dtype=object, index=frame.index)})


MISSING = (None, float("nan"), pd.NA, pd.NaT)


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("qid", (*MISSING, "", "  ", 1.5, True, ["q"]), "row 1 of the frame: the qid is "),
        ("docid", (*MISSING, "", 1.5, False), r"row 1 of the frame \(query 'q1'\): the docid is "),
        ("query", (*MISSING, "", " ", 7), "docid 'q1-d2' of query 'q1': the query is "),
        ("query", ("another",), "query 'q1' of the frame has two texts, 'who tends .* 'another'"),
        ("text", (7, 1.5, ["a"], b"bytes"), "docid 'q1-d2' of query 'q1': the text is "),
        ("title", (7, {"a": 1}), "docid 'q1-d2' of query 'q1': the title is "),
        ("score", ("1.5", True, [1]), "docid 'q1-d2' of query 'q1': the score is "),
        ("docid", ("q1-d1",), "docid 'q1-d1' stands twice in query 'q1'"),
    ],
)
async def test_a_value_that_can_not_be_used_is_named(
    server: JudgeServer, frame: pd.DataFrame, column: str, values: tuple[object, ...], said: str
) -> None:
    for value in values:
        odd = put(frame.assign(title="A title"), column, value)
        with pytest.raises(UsageError, match=said) as raised:
            await rerank_frame(odd, base_url=server.url, spec=SPEC)
        assert "\n" not in str(raised.value)
    assert server.calls == []


@pytest.mark.parametrize("value", [*MISSING, ""])
async def test_a_document_without_text_is_ranked_as_empty_and_named(
    server: JudgeServer, frame: pd.DataFrame, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    ranked = await rerank_frame(put(frame, "text", value), base_url=server.url, spec=SPEC)
    assert sorted(ranked["docid"]) == sorted(frame["docid"])
    said = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    named = "1 document of the frame without text, taken as empty: docid 'q1-d2' of query 'q1'"
    assert said == ([] if isinstance(value, str) else [named])


@pytest.mark.parametrize("column", ["qid", "query", "docid", "text"])
async def test_columns_have_to_be_there_once(
    server: JudgeServer, frame: pd.DataFrame, column: str
) -> None:
    with pytest.raises(UsageError, match=f"has no column {column}, only .*shelf"):
        await rerank_frame(frame.drop(columns=column), base_url=server.url)
    twice = pd.concat([frame, frame[[column]]], axis="columns")
    with pytest.raises(UsageError, match=f"more than one column {column}"):
        await rerank_frame(twice, base_url=server.url)
    with pytest.raises(UsageError, match="no column qid, query, docid, text, only none"):
        await rerank_frame(pd.DataFrame(), base_url=server.url)


@pytest.mark.parametrize("given", [[1], None, {"qid": ["q"]}, "frame.csv"])
async def test_what_is_no_frame_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"^the frame is .*: give a DataFrame$"):
        await rerank_frame(given)


async def test_scores_that_were_not_given_are_nan(server: JudgeServer, frame: pd.DataFrame) -> None:
    some = frame.assign(score=[float("nan"), *range(len(frame) - 1, 0, -1)])
    for given in (frame.drop(columns="score", errors="ignore"), some):
        found = (await rerank_frame(given, base_url=server.url))["first_stage_score"]
        assert found.dtype == float
        assert found.isna().sum() == (1 if given is some else len(frame))


async def test_an_empty_frame_comes_back_with_its_new_columns(
    server: JudgeServer, frame: pd.DataFrame
) -> None:
    ranked = await rerank_frame(frame.iloc[:0], base_url=server.url, spec=SPEC)
    assert len(ranked) == 0
    assert {"shelf", "rank", "score", "status"} <= set(ranked.columns)


async def test_frames_of_any_make_are_ranked_alike(
    server: JudgeServer, frame: pd.DataFrame
) -> None:
    plain = await rerank_frame(frame, base_url=server.url, spec=SPEC)
    shuffled = frame.assign(turn=frame.groupby("qid").cumcount()).sort_values(["turn", "qid"])
    kinds = [
        frame.convert_dtypes(),
        frame.convert_dtypes(dtype_backend="pyarrow"),
        frame.astype({"qid": "category", "docid": "category"}),
        frame.set_index(pd.Index([7] * len(frame))),
        frame.assign(rank=0, status="old"),
        shuffled.drop(columns="turn"),
    ]
    for kind in kinds:
        ranked = await rerank_frame(kind, base_url=server.url, spec=SPEC)
        assert ranked["docid"].tolist() == plain["docid"].tolist()
        assert ranked["shelf"].tolist() == plain["shelf"].tolist()
        assert ranked["rank"].tolist() == plain["rank"].tolist()


async def test_the_best_few_are_the_rows_that_come_back(
    server: JudgeServer, frame: pd.DataFrame
) -> None:
    spec = SPEC.model_copy(update={"top_k": 3})
    ranked = await rerank_frame(frame, base_url=server.url, spec=spec)
    assert top(ranked, "docid") == expected(frame)
    assert len(ranked) == 9


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
    assert str(Reranker(model="qwen3:8b")) == "Reranker(qwen3:8b)"
    before, after = pt.Experiment([first_stage, pipeline], queries, qrels, [P @ 3])["P@3"]
    assert before < after == 1.0
