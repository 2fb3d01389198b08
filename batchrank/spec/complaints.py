"""Words what is wrong with a setting in terms of the flag, or the key, that it was given by."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from pydantic import ValidationError

_WORDS = {
    "greater_than_equal": "must be at least {ge:g}",
    "greater_than": "must be more than {gt:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a number, not without end",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "is_instance_of": "must be a text",
    "path_type": "must be a path",
}


def complaint(error: ValidationError, flags: Container[str]) -> str:
    """The first thing that is wrong; `flags` are the settings that were given as flags.

    A whole setting is named: `--window-size must be at least 2, got 1`, or `window_size ...` where
    it stands in a job spec. What settings are to each other is said in the validator's own words.
    """
    first = error.errors()[0]
    where, value = first["loc"], first["input"]
    if not where:
        return first["msg"].removeprefix("Value error, ")
    name = _name(where, flags)
    if first["type"] == "value_error":
        return f"{name} {value}: {first['msg'].removeprefix('Value error, ')}"
    context: Mapping[str, Any] = first.get("ctx", {})
    words = _WORDS.get(first["type"])
    return f"{name} {words.format(**context) if words else first['msg']}, got {value!r}"


def _name(where: tuple[int | str, ...], flags: Container[str]) -> str:
    top = str(where[0])
    if top in flags:
        return f"--{top.replace('_', '-')}"
    # Of an entry of a list, as of [[stage]], people count from 1.
    return " ".join(str(part + 1 if isinstance(part, int) else part) for part in where)
