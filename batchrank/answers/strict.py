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
    if _COMPACT.fullmatch(text):
        return tuple(map(int, text.split(",")))
    if _BRACKETED.fullmatch(text):
        return tuple(map(int, _DIGITS.findall(text)))
    json = _JSON.fullmatch(text)
    if json and _COMPACT.fullmatch(json[1]):
        return tuple(map(int, json[1].split(",")))
    return None
