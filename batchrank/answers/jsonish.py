"""Parses JSON as models write it: cut short, single-quoted, with raw line breaks or odd commas."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from batchrank.answers.reading import integer

_DEPTH = 64
"""Nesting beyond this is no answer."""

_TOKEN = re.compile(
    r"""\s*+(?:(?P<mark>[{}\[\],:])
    |"(?P<double>(?:[^"\\]++|\\.)*+)"?
    |'(?P<single>(?:[^'\\]++|\\.)*+)'?
    |(?P<integer>-?\d++)(?![.eE\d])
    |(?P<float>-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?)
    |(?P<word>[^\W\d]\w*+)
    |(?P<other>\S))""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True)
class Members:
    """An object: its members in order, repeated keys kept, "" where a key is missing."""

    items: list[tuple[str, Value]] = field(default_factory=list)


Value = str | int | float | None | list["Value"] | Members


def parse(text: str, start: int) -> tuple[list[Value], int]:
    """Return the arrays and objects that follow each other from `start`, and where they end.

    Never fails: what can't be understood is skipped, what is open at the end is closed there.
    Linear in the text; nesting deeper than any answer gives nothing.
    """
    roots: list[Value] = []
    stack: list[list[Value] | Members] = []
    key = ""
    end = start
    for token in _TOKEN.finditer(text, start):
        end = token.end()
        mark = token["mark"]
        if not stack and mark not in ("{", "[", ","):
            return roots, token.start()
        if mark in ("}", "]"):
            stack.pop()
        elif mark == ":":
            key = _take_key(stack[-1])
        elif mark == ",":
            key = ""
        else:
            value: Value = [] if mark == "[" else Members() if mark else _scalar(token)
            _add(stack[-1] if stack else roots, key, value)
            key = ""
            if isinstance(value, list | Members):
                stack.append(value)
                if len(stack) > _DEPTH:
                    return [], len(text)
    return roots, end


def _add(container: list[Value] | Members, key: str, value: Value) -> None:
    if isinstance(container, Members):
        container.items.append((key, value))
    else:
        container.append(value)


def _take_key(container: list[Value] | Members) -> str:
    """Turn the value before a colon into the key of what follows."""
    if isinstance(container, Members) and container.items:
        name, value = container.items[-1]
        if not name and isinstance(value, str | int):
            container.items.pop()
            return str(value)
    return ""


def _scalar(token: re.Match[str]) -> Value:
    match token.lastgroup, token[token.lastgroup or 0]:
        case (("double" | "single"), text):
            return _unescaped(text)
        case "integer", digits:
            return -1 if digits.startswith("-") else integer(digits)
        case "float", digits:
            return float(digits)
        case "word", word if word not in ("null", "None", "true", "True", "false", "False"):
            return word
        case _:
            return None


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text
