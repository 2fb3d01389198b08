"""Lays out tables and lists of names as plain text of at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.cells import cell_len, chop_cells, set_cell_size

from batchrank.formats.wording import printable

WIDTH = 100
_GAP = "  "
_NARROWEST = 6
_NAMES = 10


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1, *, wraps: bool = False
) -> list[str]:
    """Lines of a table: the first `texts` columns flush left, cut to fit; numbers flush right.

    Where it `wraps`, texts are not cut: they go on below, on lines of their own.

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
    if wraps:
        cells = [line for row in cells for line in _wrapped(row, widths, texts)]
    return [
        _GAP.join(
            _left(cell, width) if place < texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _wrapped(row: Sequence[str], widths: Sequence[int], texts: int) -> Iterator[list[str]]:
    """A row as the lines that it takes."""
    columns = [
        [part for line in textwrap.wrap(cell, max(1, width)) for part in chop_cells(line, width)]
        for cell, width in zip(row[:texts], widths, strict=False)
    ]
    lines = zip_longest(*columns, *([cell] for cell in row[texts:]), fillvalue="")
    yield from map(list, lines)


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
