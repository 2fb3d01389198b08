"""The settings that `tune` tries: those of a file, or one change at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from batchrank.errors import UsageError
from batchrank.formats.wording import quoted
from batchrank.prompts.loading import load_template
from batchrank.spec.loading import make_spec
from batchrank.spec.stagespec import StageSpec
from batchrank.spec.tables import read_toml

Axes = Mapping[str, object]
"""A table of a grid: a key of a job spec with one value, or a list of values to try each of."""

DEFAULT_GRID: tuple[Axes, ...] = (
    {"depth": [40, 60]},
    {"answer": ["full", "logprobs"]},
    {"max_doc_tokens": [60, 120]},
    {"merge_passes": ["forward,shuffle:1"]},
    {"window_size": [10, 25]},
    {"strategy": ["topdown", "sliding"]},
    {"template": ["direct-zh"]},
    {"preset": ["thorough"]},
)
"""One thing changed at a time, from the cheap to the dear: a budget that ends has most of them."""
_VARIED = frozenset(StageSpec.model_fields) | {"preset", "stage", "thinking", "max_doc_tokens"}
_FEWEST = 2
"""Documents that any template has to show; how many a setting's own has is checked with it."""


def read_grid(path: Path) -> tuple[Axes, ...]:
    """Read the `[[try]]` tables of a TOML file.

    Raises UsageError, also for a value that no job could have, whatever stands beside it.
    """
    where = f"grid {quoted(path)}"
    values = read_toml(path, "grid")
    tables = values.pop("try", None)
    if values or not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise UsageError(f"{where}: expected [[try]] tables and nothing else")
    for table in tables:
        if unknown := sorted(table.keys() - _VARIED):
            raise UsageError(
                f"{where}: {unknown[0]!r} can't be varied; what can is {', '.join(sorted(_VARIED))}"
            )
        for key, listed in table.items():
            for value in _options(listed):
                _check(key, value, where)
            if not _options(listed):
                raise UsageError(f"{where}: {key} has no value to try")
    return tuple(tables)


def combinations(table: Axes) -> list[dict[str, object]]:
    """Every combination of the values of a table."""
    options = map(_options, table.values())
    return [dict(zip(table, values, strict=True)) for values in itertools.product(*options)]


def _options(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _check(key: str, value: object, where: str) -> None:
    """UsageError where `value` itself is wrong, not only beside the defaults of other keys."""
    try:
        make_spec({key: value})
    except UsageError as error:
        cause = error.__cause__
        if not isinstance(cause, ValidationError) or any(one["loc"] for one in cause.errors()):
            raise UsageError(f"{where}: {error}") from error
    for name in _templates(key, value):
        try:
            load_template(name, None, _FEWEST)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error


def _templates(key: str, value: object) -> Iterator[str]:
    if key == "template":
        yield str(value)
    elif isinstance(value, list):
        yield from (str(stage["template"]) for stage in value if "template" in stage)
