"""Reads JSON whose shape a server may get wrong, without ever raising."""

from __future__ import annotations

import math

import orjson

Json = dict[str, object]
"""A JSON object."""
_MOST = 1_000_000_000
"""Of tokens or slots: what is beyond is nonsense, and sums of it would leave SQLite's integers."""
_EXCERPT = 200


def parse(body: bytes | str) -> object:
    """The JSON value in `body`; None where there is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def dig(value: object, *keys: str) -> object:
    """The value under `keys` in nested objects; None where the path ends early."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def rows(value: object) -> list[Json]:
    """The objects of a list; empty where it is no list."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """A string; empty where it is none."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """A number of things: a non-negative integer that there can be so many of, or None."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MOST else None


def number(value: object) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def excerpt(value: bytes | str) -> str:
    """The first 200 characters for a message, control characters made visible."""
    shown = value.decode(errors="replace") if isinstance(value, bytes) else value
    cut = shown if len(shown) <= _EXCERPT else shown[:_EXCERPT] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in cut
    )
