"""Lays out tables and lists of names as plain text of at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from batchrank.formats.wording import printable

WIDTH = 100
_GAP = "  "
_NARROWEST = 6
_NAMES = 10


def table(header: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> list[str]:
    """Lines of a table: the first `texts` columns flush left, cut to fit; numbers flush right.

    Control characters become escapes. Width is that on a terminal, where a Chinese character
    takes two columns.
    """
    cells = [[_one_line(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - WIDTH
    while excess > 0:
        widest = max(range(texts), key=widths.__getitem__)
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
        excess -= 1
    return [
        _GAP.join(
            _left(cell, width) if place < texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def sentence(text: str) -> list[str]:
    """A sentence, wrapped, its further lines indented."""
    return textwrap.wrap(_one_line(text), WIDTH, subsequent_indent=_GAP)


def names(identifiers: Sequence[str]) -> str:
    """The first few identifiers, and how many more there are."""
    more = len(identifiers) - _NAMES
    named = ", ".join(identifiers[:_NAMES])
    return f"{named} and {more:,} more (all with --json)" if more > 0 else named


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _left(cell: str, width: int) -> str:
    if cell_len(cell) <= width:
        return set_cell_size(cell, width)
    return f"{set_cell_size(cell, width - 1)}…"
