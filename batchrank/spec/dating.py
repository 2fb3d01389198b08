"""Puts the day of a night in the names of files that a job spec gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from batchrank.errors import UsageError

PLACEHOLDER = "{date}"
_LIKE_ONE = re.compile(r"\{\w+\}")
DATED = ("input", "corpus", "topics", "run_file", "output", "store", "report", "target")
"""The keys in whose values `{date}` stands for the day; the last is one of `[publish]`."""

_OTHER_FILES = ("gate_qrels", "model_path", "metrics_textfile")


def check_placeholders(values: Mapping[str, object], where: str) -> None:
    """See that what stands in braces in the names of a job spec's files stands for something.

    `where` names the job spec. Raises UsageError: it would be taken literally, every night.
    """
    publish = values.get("publish")
    named = {**values, "target": publish.get("target") if isinstance(publish, Mapping) else None}
    for name in (*DATED, *_OTHER_FILES):
        found = _LIKE_ONE.findall(str(named.get(name, "")))
        known = PLACEHOLDER if name in DATED else ""
        if unknown := [one for one in found if one != known]:
            remedy = f"{PLACEHOLDER}, the day of the night, is the only placeholder"
            if unknown[0] == PLACEHOLDER:
                remedy = f"it is filled in only in {', '.join(DATED)}"
            raise UsageError(f"{where}: {name} has {unknown[0]} in it: {remedy}")


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
