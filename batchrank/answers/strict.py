"""Recognises in one step an answer that is exactly in one of the forms that are asked for."""

from __future__ import annotations

import re

_COMPACT = re.compile(r"\s*+[1-9][0-9]{0,5}+(?:\s*+,\s*+[1-9][0-9]{0,5}+)*+\s*+")
_BRACKETED = re.compile(r"\s*+\[[1-9][0-9]{0,5}+\](?:\s*+>\s*+\[[1-9][0-9]{0,5}+\])*+\s*+")
_JSON = re.compile(r"\s*+\{\s*+\"ranking\"\s*+:\s*+\[([^\[\]]*+)\]\s*+\}\s*+")
_DIGITS = re.compile(r"[0-9]++")


def numbers(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a strict answer in its order, None where it is anything else.

    Strict are `3,1,2`, `[3] > [1] > [2]` and `{"ranking": [3, 1, 2]}`, with blanks as they come.
    """
    if (json := _JSON.fullmatch(text)) is not None:
        text = json[1]
    elif _BRACKETED.fullmatch(text):
        return _digits(text)
    return _digits(text) if _COMPACT.fullmatch(text) else None


def _digits(text: str) -> tuple[int, ...]:
    # Found, not split off: a pattern's blank may be a control character that int() refuses.
    return tuple(map(int, _DIGITS.findall(text)))
