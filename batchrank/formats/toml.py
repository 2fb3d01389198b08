"""Writes a job spec as TOML that reads back as the same settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def write_toml(values: Mapping[str, object], comment: str) -> str:
    """One `key = value` line each, below the lines of `comment`.

    Values are strings, numbers, booleans, paths, mappings of these (inline tables) and sequences;
    None is left out, since TOML has no word for it.
    """
    head = [f"# {line}".rstrip() for line in comment.splitlines()]
    body = [f"{key} = {_value(value)}" for key, value in values.items() if value is not None]
    return "\n".join([*head, "", *body, ""])


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str() | Path():
            # JSON's escapes are TOML's; only DEL has none in JSON and needs one in TOML.
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            pairs = (f"{key} = {_value(one)}" for key, one in value.items() if one is not None)
            return f"{{ {', '.join(pairs)} }}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            raise TypeError(f"{type(value).__name__} can't be written as TOML")
