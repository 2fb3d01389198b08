"""The judged queries of TREC DL 2019, as a batch input and as what a judge knows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from scripts.judge import Knowledge, read_knowledge
from tests.cli.running import Row, written


def dl19(folder: Path) -> list[Row]:
    """The judged queries of TREC DL 2019 with their BM25 candidates."""
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = {row["_id"]: row["text"] for row in map(json.loads, lines)}
    found: dict[str, Row] = {}
    for row in map(json.loads, (folder / "queries.jsonl").read_text().splitlines()):
        query = {"qid": row["_id"], "text": row["text"]}
        found[row["_id"]] = {"query": query, "candidates": []}
    for line in (folder / "run.bm25.trec").read_text().splitlines():
        qid, _, docid, _, _, _ = line.split()
        candidate = {"docid": docid, "doc": {"text": texts[docid]}}
        found[qid]["candidates"].append(candidate)
    return list(found.values())


def knowledge_of_dl19(folder: Path, source: Path) -> Knowledge:
    """What a judge knows that is asked about `source`, which is written here."""
    return read_knowledge(gains=folder / "qrels.txt", inputs=[written(source, dl19(folder))])
