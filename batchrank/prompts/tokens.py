"""Estimates tokens from a text's bytes, script by script, and cuts a text to a number of them.

Asking a server for every document is too slow, and an estimate keeps prompts, and so the keys of
their answers, the same across nights. What the estimate misses is one ratio a model, measured once.
"""

from __future__ import annotations

import string
from dataclasses import dataclass

_LETTERS = (string.ascii_letters + " ").encode()
_HIGH = bytes(range(0x80, 0x100))
_LETTERS_A_TOKEN = 4.6
_HIGH_BYTES_A_TOKEN = 3.0
"""A CJK character is three bytes and about one token; other scripts come out a little high."""
_OTHERS_A_TOKEN = 1.7
"""Digits, punctuation, line ends: what makes code and numbers dear."""
_MOST_TOKENS_A_CHARACTER = 4 / _HIGH_BYTES_A_TOKEN
"""Of an emoji, which is four bytes."""
_LONGEST_TOKEN = 12
"""No text is worth looking at beyond this many characters a wanted token."""


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts tokens for one model; `ratio` is its true count over the estimate."""

    ratio: float = 1.0

    def count(self, text: str) -> int:
        """Tokens of `text`, rounded up."""
        return -int(-estimate(text) * self.ratio // 1)

    def cut(self, text: str, tokens: int, odd: bytes | None = None) -> str:
        """The longest beginning of `text` of about `tokens`, ended at a blank if one is near.

        `odd` are its `odd_bytes`, where they are known. Works in linear time by bytes, so that one
        word of a megabyte is cut like any other text.
        """
        limit = tokens / self.ratio
        if len(text) * _MOST_TOKENS_A_CHARACTER <= limit:
            return text
        if odd is not None and text.isascii() and _tokens(len(text), odd) <= limit:
            return text
        text = text[: int(limit * _LONGEST_TOKEN) + 1]
        total = estimate(text)
        if total <= limit:
            return text
        low, high = 0, len(text)
        while high - low > 1:
            middle = (low + high) // 2
            if estimate(text[:middle]) <= limit:
                low = middle
            else:
                high = middle
        blank = text.rfind(" ", low * 9 // 10, low + 1)
        return text[: blank if blank > 0 else low].rstrip()


def estimate(text: str) -> float:
    """Tokens of `text` for a typical multilingual vocabulary, before a model's own ratio."""
    data = text.encode("utf-8", "replace")
    return _tokens(len(data), data.translate(None, _LETTERS))


def odd_bytes(text: str) -> bytes:
    """All of a text, in UTF-8, but Latin letters and blanks: what makes it dear, or does harm."""
    return text.encode("utf-8", "replace").translate(None, _LETTERS)


def _tokens(size: int, odd: bytes) -> float:
    """The estimate for `size` bytes, `odd` among them."""
    others = len(odd.translate(None, _HIGH))
    return (
        (size - len(odd)) / _LETTERS_A_TOKEN
        + (len(odd) - others) / _HIGH_BYTES_A_TOKEN
        + others / _OTHERS_A_TOKEN
    )
