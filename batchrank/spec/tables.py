"""Checks the shape of a job spec before its values: which keys and tables there are."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from batchrank.errors import UsageError
from batchrank.hints import meant


def read_toml(path: Path, what: str) -> dict[str, object]:
    """The values of a TOML file; UsageError names it as `what` where it can't be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    # tomllib raises a ValueError of Python's own for a number of thousands of digits.
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} {path} can't be read: {error}") from error


def check_tables(values: Mapping[str, object], shape: type[BaseModel], where: str) -> None:
    """Refuse a key that `shape` has no field for, and a table where none, or another, belongs.

    `where` begins the message. Raises UsageError that names the nearest key that there is.
    """
    fields = {field.alias or name: field for name, field in shape.model_fields.items()}
    for key, value in values.items():
        if (field := fields.get(key)) is None:
            is_table = isinstance(value, dict)
            known = [name for name in fields if not is_table or _is_table(fields[name])]
            raise UsageError(f"{where}: {_unknown(key, value, known)}")
        for inner in _models(field.annotation):
            if _is_list(field.annotation):
                for table in _several(key, value, where):
                    check_tables(table, inner, f"{where}, [[{key}]]")
            elif isinstance(value, dict):
                check_tables(value, inner, f"{where}, [{key}]")
            else:
                raise UsageError(f"{where}: {key} must be a table: write [{key}] above its keys")


def _several(key: str, value: object, where: str) -> list[dict[str, object]]:
    """The tables of a key that has several."""
    if value == []:
        raise UsageError(f"{where}: {key} is empty: leave it out, or write [[{key}]] tables")
    tables = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    if not isinstance(value, list) or len(tables) < len(value):
        raise UsageError(
            f"{where}: {key} must be a list of tables: write [[{key}]], in double brackets, "
            "above the keys of each"
        )
    return tables


def _unknown(key: str, value: object, known: list[str]) -> str:
    hint = meant(key, known)
    if isinstance(value, dict):
        return f"unknown section [{key}]{hint or '; settings stand at the top, in no section'}"
    return f"unknown key {key!r}{hint}"


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """The model that a field holds one or several of, if it does."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _is_table(field: FieldInfo) -> bool:
    return next(_models(field.annotation), None) is not None


def _is_list(annotation: object) -> bool:
    return getattr(annotation, "__origin__", None) is tuple or any(
        _is_list(part) for part in get_args(annotation)
    )
