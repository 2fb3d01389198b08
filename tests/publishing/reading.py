"""Reads what was published with other means than batchrank's own."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import redis


def values_at(target: str) -> dict[str, Any]:
    """The values of all current entries at a target, by key."""
    kind, _, name = target.partition(":")
    if kind == "redis":
        return _values_in_redis(target)
    if kind == "jsonl":
        header, *rows = map(json.loads, Path(name).read_text().splitlines())
        assert header["batchrank-cache"] == 1
        return {row["key"]: row["value"] for row in rows}
    if kind == "parquet":
        rows = pq.read_table(name).to_pylist()
        return {row.pop("key"): row for row in rows if row.pop("expires") is not False}
    assert kind == "sqlite"
    with closing(sqlite3.connect(name)) as db:
        found = db.execute(
            "SELECT key, value FROM entries "
            "JOIN generations ON generations.id = generation WHERE state = 'current'"
        ).fetchall()
    return {key: json.loads(value) for key, value in found}


def docids_at(target: str) -> dict[str, list[str]]:
    """The docids of all current entries at a target, by key."""
    return {key: value["docids"] for key, value in values_at(target).items()}


def _values_in_redis(url: str) -> dict[str, Any]:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        generation = client.get("batchrank:current")
        prefix = f"batchrank:gen:{generation}:"
        found = {}
        for key in client.scan_iter(match=f"{prefix}*"):
            value = client.get(key)
            assert isinstance(value, str)
            found[key.removeprefix(prefix)] = json.loads(value)
    return found
