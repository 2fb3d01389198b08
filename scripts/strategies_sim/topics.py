"""Reads judged queries with their first stage and counts the tokens of what a prompt shows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from batchrank.prompts.neutral import neutral
from batchrank.prompts.tokens import TokenCounter, estimate
from batchrank.values import Ranking
from scripts.judge import read_knowledge

MAX_DOC_TOKENS = 200
CUTOFF = 10
FRAME_TOKENS = 160
"""Instruction and reminder of the built-in listwise template; the query stands there twice."""
FRAME_TOKENS_OF_ONE = 80
"""The same of a template that shows one document."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One query: grades and prompt tokens by docid; `query_tokens` of it stand in a prompt."""

    qid: str
    first_stage: Ranking
    grades: dict[str, float]
    tokens: dict[str, float]
    query_tokens: float
    ideal: float

    def ndcg(self, ranking: Ranking) -> float:
        """nDCG@10 as trec_eval computes it: gain is the grade."""
        return _dcg(self.grades[docid] for docid in ranking[:CUTOFF]) / self.ideal


def load_topics(folder: Path) -> list[Topic]:
    """Read `qrels.txt`, `queries.jsonl`, `corpus.jsonl.gz` and `run.bm25.trec` of `folder`.

    Raises OSError, and ValueError for a line that can't be read.
    """
    known = read_knowledge(
        gains=folder / "qrels.txt",
        corpus=folder / "corpus.jsonl.gz",
        queries=folder / "queries.jsonl",
    )
    counter = TokenCounter()
    topics = []
    for qid, docids in _read_run(folder / "run.bm25.trec").items():
        gains = known.gains[qid]
        texts = {
            docid: counter.cut(neutral(known.documents[docid][1]), MAX_DOC_TOKENS)
            for docid in docids
        }
        best = sorted((max(gain, 0.0) for gain in gains.values()), reverse=True)[:CUTOFF]
        topics.append(
            Topic(
                qid=qid,
                first_stage=docids,
                grades={docid: max(gains.get(docid, 0.0), 0.0) for docid in docids},
                tokens={docid: estimate(f"[12] {text}\n") for docid, text in texts.items()},
                query_tokens=2 * estimate(known.queries[qid]),
                ideal=_dcg(best),
            )
        )
    return topics


def _read_run(path: Path) -> dict[str, Ranking]:
    ranked: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        qid, _, docid, *_ = line.split()
        ranked.setdefault(qid, []).append(docid)
    return {qid: tuple(docids) for qid, docids in ranked.items()}


def _dcg(grades: Iterable[float]) -> float:
    return sum(grade / math.log2(place + 2) for place, grade in enumerate(grades))
