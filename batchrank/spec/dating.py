"""Puts the day of a night in the names of files that a job spec gives."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

PLACEHOLDER = "{date}"
DATED = ("input", "corpus", "topics", "run_file", "output", "store", "report", "target")
"""The keys in whose values `{date}` stands for the day; the last is one of `[publish]`."""


def dated(values: Mapping[str, object], day: date) -> dict[str, object]:
    """The same values with the day, as 2026-11-30, for each `{date}` in a file's name."""
    return {
        name: _dated(value, day) if name in (*DATED, "publish") else value
        for name, value in values.items()
    }


def _dated(value: object, day: date) -> object:
    if isinstance(value, Mapping):
        return dated(value, day)
    if isinstance(value, str | Path) and PLACEHOLDER in str(value):
        return str(value).replace(PLACEHOLDER, day.isoformat())
    return value
