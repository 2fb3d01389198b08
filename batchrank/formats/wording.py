"""Words values found in an input file so that they are safe and short on a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import floor, log10

_LONGEST = 60


def shown(value: object) -> str:
    """Name a value read from JSON: strings quoted, cut at 60 characters, controls escaped."""
    match value:
        case str():
            # repr escapes all that is not printable, bidirectional overrides included.
            return repr(value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…")
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return json.dumps(value)


def displayable(name: str) -> str:
    r"""Name a file in a text that must be Unicode: bytes that are not UTF-8 become `\xe9`."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def quoted(path: object) -> str:
    """Name a path, never cut, controls escaped."""
    return repr(str(path))


def listed(values: Iterable[str]) -> str:
    """Name the first few of some strings, quoted: `'a', 'b', 'c', …`."""
    named = [shown(value) for value in values]
    return ", ".join(named[:6]) + (", …" if len(named) > 6 else "")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Put a number before its noun: `1 query`, `2 queries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """Seconds in the largest two units."""
    whole = round(seconds)
    if whole < 60:
        if 0 < seconds < 0.1:
            return f"{seconds * 1000:.0f} ms"
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def money(price: float) -> str:
    """A price with two decimals, a small one with its first two digits."""
    places = 1 - floor(log10(price)) if 0 < price < 0.1 else 2
    return f"{price:,.{places}f}"


def one_line(text: str) -> str:
    r"""`text` with line feeds as \n too."""
    return printable(text).replace("\n", "\\n")


def printable(text: str) -> str:
    r"""`text` with control characters as escapes such as \x1b, so that none reaches a terminal."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character == "\n"
        else character.encode("unicode_escape").decode()
        for character in text
    )
