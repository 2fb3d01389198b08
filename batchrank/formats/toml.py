"""Writes a job spec as TOML that reads back as the same settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path


def write_toml(values: Mapping[str, object], comment: str) -> str:
    """One `key = value` line each, below the lines of `comment`.

    Values are strings, numbers, booleans, days, paths, mappings of these (inline tables) and
    sequences; None is left out, since TOML has no word for it.
    """
    head = [f"# {line}".rstrip() for line in comment.splitlines()]
    body = [f"{_key(key)} = {_value(value)}" for key, value in values.items() if value is not None]
    return "\n".join([*head, "", *body, ""])


def _key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else _text(key)


def _text(text: str) -> str:
    # JSON's escapes are TOML's; only DEL has none in JSON and needs one in TOML.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str() | Path():
            return _text(str(value))
        case date():
            return value.isoformat()
        case Mapping():
            pairs = (
                f"{_key(key)} = {_value(one)}" for key, one in value.items() if one is not None
            )
            return f"{{ {', '.join(pairs)} }}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            raise TypeError(f"{type(value).__name__} can't be written as TOML")
