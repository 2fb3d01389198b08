"""What model servers were found to be, remembered between runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from batchrank.store.store import Store


async def recall(store: Store, target: str) -> dict[str, Any] | None:
    """What the server that a job means was when it was last asked; see `JobSpec.target`."""
    rows = await store.select("SELECT profile FROM models WHERE target = ?", (target,))
    return orjson.loads(rows[0][0]) if rows else None


async def remember(store: Store, target: str, profile: Mapping[str, object]) -> None:
    """Keep what a server was found to be."""
    await store.write(
        "INSERT OR REPLACE INTO models VALUES (?, ?)", (target, orjson.dumps(profile).decode())
    )


async def recall_all(store: Store) -> list[dict[str, Any]]:
    """What every server was that the store's jobs were about."""
    rows = await store.select("SELECT profile FROM models", ())
    return [orjson.loads(profile) for (profile,) in rows]
