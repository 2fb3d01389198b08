"""Reranks an input with rank_llm's LiteLLM client, as a script of a user would.

PYTHON scripts/peers/rank_llm_client.py URL INPUT THREADS
"""

from __future__ import annotations

import sys

from rank_llm.data import read_requests_from_file
from rank_llm.rerank import Reranker
from rank_llm.rerank.listwise import SafeLiteLLM
from rank_llm.rerank.reranker import TEMPLATES

DEPTH = 100
CONTEXT = 16384
TEMPLATE = "rank_zephyr_template.yaml"
"""One message a window, as batchrank sends."""


def main(url: str, source: str, threads: str) -> None:
    """Sliding windows of 20 with stride 10 over so many queries at a time."""
    client = SafeLiteLLM(
        model="openai/judge",
        context_size=CONTEXT,
        prompt_template_path=str(TEMPLATES / TEMPLATE),
        window_size=20,
        stride=10,
        batch_size=int(threads),
        api_key="none",
        api_base=f"{url}/v1",
    )
    requests = read_requests_from_file(source)
    results = Reranker(client).rerank_batch(requests, rank_end=DEPTH)
    if len(results) != len(requests):
        sys.exit(f"{len(results)} results of {len(requests)} queries")


if __name__ == "__main__":
    main(*sys.argv[1:4])
