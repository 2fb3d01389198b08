"""Puts the day of a night in the names of files that a job spec gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from batchrank.errors import UsageError
from batchrank.spec.jobspec import JobSpec

PLACEHOLDER = "{date}"
_MEANT = re.compile(r"\{\{|\}\}|\{\w+\}")
"""What does not stand for itself: a brace is written twice, as in Python's `str.format`."""
DATED = ("input", "corpus", "topics", "run_file", "output", "store", "report", "target")
"""The keys in whose values `{date}` stands for the day; the last is one of `[publish]`."""

_BRACES = {"{{": "{", "}}": "}"}
_OTHER_FILES = ("gate_qrels", "model_path", "metrics_textfile")


def check_placeholders(values: Mapping[str, object], where: str) -> None:
    """See that what stands in braces in the names of a job spec's files stands for something.

    `where` names the job spec. Raises UsageError: it would be taken literally, every night.
    """
    publish = values.get("publish")
    named = {**values, "target": publish.get("target") if isinstance(publish, Mapping) else None}
    for name in (*DATED, *_OTHER_FILES):
        found = [one for one in _MEANT.findall(str(named.get(name, ""))) if one not in _BRACES]
        known = PLACEHOLDER if name in DATED else ""
        if unknown := [one for one in found if one != known]:
            remedy = (
                f"{PLACEHOLDER}, the day of the night, is the only placeholder; a brace that "
                "stands for itself is written twice"
            )
            if unknown[0] == PLACEHOLDER:
                remedy = f"it is filled in only in {', '.join(DATED)}"
            raise UsageError(f"{where}: {name} has {unknown[0]} in it: {remedy}")


def dated(values: Mapping[str, object], day: date) -> dict[str, object]:
    """The same values with the day, as 2026-11-30, for each `{date}` in a file's name."""
    return _filled(values, {PLACEHOLDER: day.isoformat()})


def names_of(spec: JobSpec) -> dict[str, str]:
    """The names of the night's files that `spec` gives, by key; no URL: it may hold a password."""
    found = {name: getattr(spec, name) for name in DATED if name != "target"}
    found["target"] = None if spec.publish is None else spec.publish.target
    # A file's name need not be UTF-8, which a store's texts are.
    given = {
        name: str(value).encode(errors="surrogateescape").decode(errors="backslashreplace")
        for name, value in found.items()
        if value is not None
    }
    return {name: value for name, value in given.items() if "://" not in value}


def read_names(values: Mapping[str, object], day: date) -> dict[str, object]:
    """As `dated`, for the values of a job spec: there a brace is written twice."""
    return _filled(values, {PLACEHOLDER: day.isoformat(), **_BRACES})


def literal(name: str | Path) -> str:
    """A file's name as a job spec has it, so that no part of it is a placeholder."""
    return re.sub(r"[{}]", lambda brace: brace[0] * 2, str(name))


def _filled(values: Mapping[str, object], meant: Mapping[str, str]) -> dict[str, object]:
    return {key: _read(key, value, meant) for key, value in values.items()}


def _read(key: str, value: object, meant: Mapping[str, str]) -> object:
    if key == "publish" and isinstance(value, Mapping):
        return _filled(value, meant)
    if key not in (*DATED, *_OTHER_FILES) or not isinstance(value, str | Path):
        return value
    known = {one: meant[one] for one in meant if key in DATED or one in _BRACES}
    return _MEANT.sub(lambda one: known.get(one[0], one[0]), str(value))
