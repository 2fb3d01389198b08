"""Splits texts into words, to compare documents by what they share."""

from __future__ import annotations

import re

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Kana and Chinese characters: written without spaces, so each counts as a word."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return _WORD.findall(text.lower())
