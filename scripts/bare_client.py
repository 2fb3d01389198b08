"""The yardstick of the benchmarks: the calls of a job by plain aiohttp and uvloop, nothing else.

    python scripts/bare_client.py URL INPUT IN_FLIGHT --strategy segmented
    python scripts/bare_client.py URL CALLS IN_FLIGHT --recorded

Every query's segments go out at once and its merge follows them, merges first, as in batchrank;
prompts are rendered before the first call, answers are received and thrown away. With `--recorded`
the bodies are those that `recording_proxy.py` wrote down, one after the other. In `--cpu FILE` it
leaves the processor seconds that the calls alone took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

import aiohttp
import orjson
import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from batchrank.backends.dialects import DIALECTS
from batchrank.calls import Form
from batchrank.formats.lines import read_lines
from batchrank.formats.requests import parse_request
from batchrank.prompts.loading import load_template
from batchrank.prompts.render import Cut, QueryTexts
from batchrank.prompts.tokens import TokenCounter
from batchrank.readings.base import Means
from batchrank.readings.identifiers import Identifiers
from batchrank.spec.jobspec import JobSpec
from batchrank.strategies.base import Round, drive
from batchrank.values import Permutation, Request, Status

Queries = list[list[list[bytes]]]
"""Bodies by query and round."""


def rendered(source: str, strategy: str) -> Queries:
    """The bodies of an input's windows, as batchrank would send them."""
    requests = [parse_request(line.data).request for block in read_lines(source) for line in block]

    means = Means(load_template("direct-en"), Form.GRAMMAR)

    async def render() -> Queries:
        return [await _bodies(request, strategy, means) for request in requests]

    return asyncio.run(render())


def recorded(calls: str) -> Queries:
    """Recorded bodies, in the order in which they came, each as a query of its own."""
    with Path(calls).open(encoding="utf-8") as file:
        rows = sorted((json.loads(line) for line in file), key=lambda row: row["time"])
    return [[[row["body"].encode()]] for row in rows]


async def drive_all(url: str, queries: Queries, in_flight: int) -> None:
    """Make all calls, at most `in_flight` at a time."""
    order = count()
    ready: list[tuple[int, int, int]] = []  # (−round, order, query)
    left: dict[int, int] = {}
    rounds = [0] * len(queries)
    waiting = iter(range(len(queries)))

    def open_round(query: int) -> None:
        left[query] = len(queries[query][rounds[query]])
        for _ in range(left[query]):
            heappush(ready, (-rounds[query], next(order), query))

    async def worker(session: aiohttp.ClientSession) -> None:
        while True:
            if not ready:
                query = next(waiting, None)
                if query is None:
                    return
                open_round(query)
            _, _, query = heappop(ready)
            body = queries[query][rounds[query]].pop()
            async with session.post(f"{url}/v1/chat/completions", data=body) as response:
                await response.read()
            left[query] -= 1
            if left[query] == 0 and rounds[query] + 1 < len(queries[query]):
                rounds[query] += 1
                open_round(query)

    connector = aiohttp.TCPConnector(limit=0)
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        await asyncio.gather(*(worker(session) for _ in range(in_flight)))


async def _bodies(request: Request, strategy: str, means: Means) -> list[list[bytes]]:
    """The bodies of a query's windows, round by round."""
    spec = JobSpec.model_validate({"strategy": strategy})
    cut = Cut(TokenCounter(), spec.max_doc_tokens)
    texts = QueryTexts(request, spec.depth, cut)
    reader = Identifiers(full=False)
    rounds: list[list[bytes]] = []

    async def ask(windows: Round, _number: int) -> list[Permutation]:
        rounds.append(
            [
                orjson.dumps(
                    DIALECTS["llama.cpp"].body(
                        reader.prompt(texts, window, means),
                        model="judge",
                        seed=0,
                        thinking=False,
                    )
                )
                for window in windows
            ]
        )
        return [Permutation(w.prior, len(w.prior), Status.OK) for w in windows]

    plan = spec.make_strategy(spec.window_size)
    await drive(plan(tuple(d.docid for d in request.candidates)), ask)
    return rounds


def main() -> None:
    """Read the arguments and make the calls."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("source")
    parser.add_argument("in_flight", type=int)
    parser.add_argument("--strategy", default="segmented")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--cpu", type=Path)
    given = parser.parse_args()
    queries = recorded(given.source) if given.recorded else rendered(given.source, given.strategy)
    before = time.process_time()
    uvloop.run(drive_all(given.url, queries, given.in_flight))
    if given.cpu is not None:
        given.cpu.write_text(str(time.process_time() - before), encoding="ascii")


if __name__ == "__main__":
    main()
