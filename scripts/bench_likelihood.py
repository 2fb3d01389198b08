"""Measures likelihood reranking with a real small model: nDCG@10 before and after, time, tokens.

    python -m scripts.bench_likelihood MODEL.gguf ../shared/data/dl19 --queries 0:24 --depth 40 \\
        --template likelihood-en --template scripts/bench_templates/few.toml

Each --template is tried on the same queries, with `score` the sum and the mean over the query's
tokens. The differences are paired by query; their intervals are bootstrapped.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import uvloop

from batchrank.backends.base import BackendOptions
from batchrank.backends.embedded.runtimes import Load
from batchrank.backends.embedded.server import EmbeddedServer
from batchrank.backends.openai import OpenAIBackend
from batchrank.calls import Answer, Form
from batchrank.metrics.evaluation import evaluate, parse_measures
from batchrank.prompts.loading import load_template
from batchrank.prompts.render import Cut, QueryTexts
from batchrank.prompts.tokens import TokenCounter
from batchrank.readings.base import Means
from batchrank.readings.likelihood import Likelihood
from batchrank.values import Document, Query, Request, Window

MEASURE = "nDCG@10"
SECONDS = 600
CONTEXT = 1024


@dataclass
class Tried:
    """What one template brought: scores by query and document, and what they cost."""

    sums: dict[str, dict[str, float]] = field(default_factory=dict)
    means: dict[str, dict[str, float]] = field(default_factory=dict)
    first_stage: dict[str, dict[str, float]] = field(default_factory=dict)
    seconds: float = 0.0
    tokens: int = 0
    splits: int = 0
    """Documents whose query was tokenised in another way than for most."""


async def main() -> None:
    """Print a table, one line a template."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--template", action="append", default=[], metavar="NAME")
    parser.add_argument("--queries", default="0:43", metavar="FROM:TO")
    parser.add_argument("--depth", type=int, default=40)
    parser.add_argument("--max-doc-tokens", type=int, default=120)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--url", help="a llama.cpp server that has MODEL, in place of our own")
    options = parser.parse_args()
    start, end = map(int, options.queries.split(":"))
    requests = read_requests(options.data, options.depth)[start:end]
    qrels = read_qrels(options.data)
    judged = {request.query.qid: qrels[request.query.qid] for request in requests}
    async with EmbeddedServer() as server:
        url = options.url or await server.start(options.model, Load(CONTEXT, options.slots))
        backend = OpenAIBackend(BackendOptions(url))
        await backend.describe()
        for name in options.template or ["likelihood-en"]:
            tried = await rank(backend, name, requests, options.max_doc_tokens, options.slots)
            report(name, tried, judged)
        await backend.close()


async def rank(
    backend: OpenAIBackend, name: str, requests: Sequence[Request], tokens: int, slots: int
) -> Tried:
    """Score every document of every request."""
    reader, tried = Likelihood(), Tried()
    means = Means(load_template(name, "likelihood"), Form.TEXT)
    turn = asyncio.Semaphore(slots)

    async def ask(texts: QueryTexts, docid: str) -> Answer:
        window = Window((docid,), (docid,), 1)
        async with turn:
            call = backend.encode(reader.prompt(texts, window, means))
            return await backend.send(call, SECONDS)

    began = time.perf_counter()
    for request in requests:
        texts = QueryTexts(request, len(request.candidates), Cut(TokenCounter(), tokens))
        docids = [document.docid for document in request.candidates]
        answers = await asyncio.gather(*(ask(texts, docid) for docid in docids))
        qid = request.query.qid
        sums = [sum(logprob for _, logprob in answer.scored) for answer in answers]
        lengths = [len(answer.scored) for answer in answers]
        tried.sums[qid] = dict(zip(docids, sums, strict=True))
        tried.means[qid] = {
            docid: total / length
            for docid, total, length in zip(docids, sums, lengths, strict=True)
        }
        tried.first_stage[qid] = {docid: -float(place) for place, docid in enumerate(docids)}
        usual = max(set(lengths), key=lengths.count)
        tried.splits += sum(length != usual for length in lengths)
        tried.tokens += sum(a.usage.prompt_tokens + a.usage.completion_tokens for a in answers)
    tried.seconds = time.perf_counter() - began
    return tried


def report(name: str, tried: Tried, qrels: dict[str, dict[str, int]]) -> None:
    """Print what a template brought."""
    (measure,) = parse_measures([MEASURE])
    before = evaluate([measure], qrels, tried.first_stage)[MEASURE]
    for how, run in (("sum", tried.sums), ("mean", tried.means)):
        after = evaluate([measure], qrels, run)[MEASURE]
        changes = [after.by_query[qid] - before.by_query[qid] for qid in qrels]
        low, high = interval(changes)
        print(
            f"{name:<28} {how:<5} {before.value:.4f} -> {after.value:.4f} "
            f"{after.value - before.value:+.4f} [{low:+.4f}, {high:+.4f}]  "
            f"{tried.seconds / len(qrels):.1f} s, {tried.tokens / len(qrels):,.0f} tokens a query, "
            f"{tried.splits} documents with another tokenisation",
            flush=True,
        )


def interval(changes: Sequence[float]) -> tuple[float, float]:
    """The 95% bootstrap interval of a mean of paired differences."""
    random = Random(1)
    means = sorted(sum(random.choices(changes, k=len(changes))) / len(changes) for _ in range(5000))
    return means[124], means[4874]


def read_requests(folder: Path, depth: int) -> list[Request]:
    """The queries of a data set with their first `depth` candidates and texts."""
    documents: dict[str, str] = {}
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as corpus:
        for line in corpus:
            row = json.loads(line)
            documents[row["_id"]] = row["text"]
    found: dict[str, list[Document]] = {}
    (run,) = folder.glob("run.*.trec")
    for line in run.read_text().splitlines():
        qid, _, docid, *_ = line.split()
        candidates = found.setdefault(qid, [])
        if len(candidates) < depth:
            candidates.append(Document(docid, documents[docid]))
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    return [
        Request(Query(row["_id"], row["text"]), tuple(found[row["_id"]]))
        for row in queries
        if row["_id"] in found
    ]


def read_qrels(folder: Path) -> dict[str, dict[str, int]]:
    """Grades by query and document."""
    qrels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        qid, _, docid, grade = line.split()
        qrels.setdefault(qid, {})[docid] = int(grade)
    return qrels


if __name__ == "__main__":
    uvloop.run(main())
