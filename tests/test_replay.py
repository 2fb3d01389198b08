"""Recorded windows of real models, replayed over HTTP, give the run that was recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import ir_measures
import pytest
from ir_measures import nDCG

from tests.cli.running import batchrank, rows_of, serving, written
from tests.replay_server import ReplayServer, read_rows

SLIDING = ("--strategy", "sliding", "--answer", "full")
AS_RECORDED = (*SLIDING, "--no-re-ask")


@pytest.fixture
def first_stage(shared_data: Path, tmp_path: Path) -> Path:
    """The BM25 run as an input whose texts are docids and qids."""
    run = _orders(shared_data / "dl19" / "run.bm25.trec")
    return written(
        tmp_path / "in.jsonl",
        [
            {
                "query": {"qid": qid, "text": qid},
                "candidates": [{"docid": docid, "doc": {"text": docid}} for docid in docids],
            }
            for qid, docids in run.items()
        ],
    )


@pytest.fixture
def by_order(shared_data: Path) -> Iterator[ReplayServer]:
    rows = read_rows(shared_data / "replay" / "vicuna13b_base_dl19.jsonl.gz")
    with serving(ReplayServer(rows, by="order")) as server:
        yield server


def _orders(path: Path) -> dict[str, list[str]]:
    orders: defaultdict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines():
        qid, _, docid, *_ = line.split()
        orders[qid].append(docid)
    return dict(orders)


def _ndcg(shared_data: Path, run: Path) -> float:
    qrels: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for line in (shared_data / "dl19" / "qrels.txt").read_text().splitlines():
        qid, _, docid, grade = line.split()
        qrels[qid][docid] = int(grade)
    scores: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for line in run.read_text().splitlines():
        qid, _, docid, _, score, _ = line.split()
        scores[qid][docid] = float(score)
    return round(ir_measures.calc_aggregate([nDCG @ 10], qrels, scores)[nDCG @ 10], 4)


def test_a_recorded_run_comes_out_exactly(
    shared_data: Path, first_stage: Path, tmp_path: Path
) -> None:
    recorded = shared_data / "replay" / "vicuna7b_v2_dl19"
    output = tmp_path / "out.trec"
    rows = read_rows(recorded.with_suffix(".jsonl.gz"))
    with serving(ReplayServer(rows, by="window")) as server:
        ended = batchrank(
            *("run", first_stage, "-o", output, "--store", tmp_path / "store"),
            *("--base-url", server.url, "--output-format", "trec", *SLIDING),
        )
    assert ended.code == 0, ended.err
    assert server.missed == 0
    assert sum(server.replayed.values()) == len(rows) == 43 * 9
    expected = _orders(recorded.with_suffix(".recorded.trec"))
    assert len(expected) == 43
    assert _orders(output) == expected
    assert _ndcg(shared_data, output) == 0.6675


def test_unusable_answers_leave_their_windows_alone(
    shared_data: Path, first_stage: Path, tmp_path: Path, by_order: ReplayServer
) -> None:
    output = tmp_path / "out.jsonl"
    trec = tmp_path / "out.trec"
    store = ("--store", tmp_path / "store")
    ended = batchrank(
        *("run", first_stage, "-o", output, *store, "--base-url", by_order.url),
        *(*AS_RECORDED, "--max-fallback", "1"),
    )
    assert ended.code == 0, ended.err
    assert by_order.missed == 0
    assert sum(row["windows"]["fallback"] for row in rows_of(output)) == 384
    assert batchrank("export", *store, "--output-format", "trec", "-o", trec).code == 0
    assert _ndcg(shared_data, trec) == 0.5058


def test_a_run_of_unusable_answers_stops_and_is_not_written(
    first_stage: Path, tmp_path: Path, by_order: ReplayServer
) -> None:
    output = tmp_path / "out.jsonl"
    ended = batchrank(
        *("run", first_stage, "-o", output, "--store", tmp_path / "store"),
        *("--base-url", by_order.url, *AS_RECORDED),
    )
    assert ended.code == 3, ended.err
    assert not output.exists()
    assert ended.err.count("for example query") == 3
