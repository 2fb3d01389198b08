"""Has windows asked anew whose answers were unusable, where the user wants that."""

from __future__ import annotations

from collections.abc import Iterable

from batchrank.ranking.replay import replay
from batchrank.store.queries import forget_answers, rankings
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import Status


async def forget_fallbacks(store: Store, run: Run, keys: Iterable[bytes]) -> None:
    """Forget the answers of those windows of the rankings `keys` that fell back.

    All other answers stay and cost nothing when the queries are ranked again.
    """
    for ranked in await rankings(store, keys):
        windows = await replay(ranked, run.settings, store)
        await forget_answers(
            store,
            [
                number
                for number, window in zip(ranked.answers, windows, strict=True)
                if window.permutation.status is Status.FALLBACK
            ],
        )
