"""Reranks an input with the RankGPT ranker of `rerankers`, as a script of a user would.

    PYTHON scripts/peers/rerankers_client.py URL INPUT THREADS

The package asks about one window in a call that blocks: windows and threads are this script's.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rerankers.models.rankgpt_rankers import RankGPTRanker

WINDOW, STRIDE = 20, 10


def main(url: str, source: str, threads: str) -> None:
    """Sliding windows of 20 with stride 10 over so many queries at a time."""
    os.environ["OPENAI_BASE_URL"] = os.environ["OPENAI_API_BASE"] = f"{url}/v1"
    ranker = RankGPTRanker("openai/judge", api_key="none", verbose=0)

    def rank(line: str) -> None:
        row = json.loads(line)
        texts = [candidate["doc"]["text"] for candidate in row["candidates"]]
        for end in range(len(texts), WINDOW - 1, -STRIDE):
            start = end - WINDOW
            ranked = ranker.rank(row["query"]["text"], texts, rank_start=start, rank_end=end)
            texts = [result.document.text for result in ranked.results]

    with Path(source).open(encoding="utf-8") as lines, ThreadPoolExecutor(int(threads)) as pool:
        list(pool.map(rank, lines))


if __name__ == "__main__":
    main(*sys.argv[1:4])
