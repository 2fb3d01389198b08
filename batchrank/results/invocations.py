"""Says in RankLLM's words which calls a ranking rests on."""

from __future__ import annotations

from typing import Any

from batchrank.formats.rows import Invocation
from batchrank.ranking.replay import replay
from batchrank.store.store import Store
from batchrank.values import RankedQuery


async def invocations(
    ranked: RankedQuery, settings: dict[str, Any], store: Store
) -> list[Invocation]:
    """A call for each window that was answered, in the order of the strategy."""
    return [
        Invocation(
            prompt=None,
            shown=one.window.shown,
            response=one.answer.text,
            input_token_count=one.answer.usage.prompt_tokens,
            output_token_count=one.answer.usage.completion_tokens,
        )
        for one in await replay(ranked, settings, store)
        if one.answer is not None
    ]
