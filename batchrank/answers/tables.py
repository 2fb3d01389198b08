"""Reads a Markdown table of ranked documents by what its columns hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from batchrank.answers.lexing import single
from batchrank.answers.reading import Found, failed
from batchrank.answers.scores import Score, by_scores, score

_RULE = re.compile(r"[\s|:+-]+")
_DOCUMENT = re.compile(r"passage|doc|\bid\b|identifier|item|candidate|index|文档|段落|编号", re.I)
_SCORE = re.compile(r"scor|relevan|rating|confidence|得分|分数|相关", re.I)
_RANK = re.compile(r"rank|position|place|order|#|排名|名次", re.I)


def read_table(text: str) -> Found | None:
    """Return the ranking of the rows of a table; None where there is no table of numbers.

    The documents stand in the column that is called so, else in the only column of numbers that
    does not just count the rows. Ranks decide over scores, and scores over the order of the rows.
    """
    lines = [line.strip().strip("|").split("|") for line in text.split("\n") if "|" in line]
    rows = [[cell.strip() for cell in cells] for cells in lines]
    rows = [cells for cells in rows if not _RULE.fullmatch("|".join(cells)) and len(cells) > 1]
    if len(rows) < 2:
        return None
    head, body = (rows[0], rows[1:]) if _integers(rows[0][:1]) is None else ([], rows)
    width = min(map(len, rows))
    columns = [[cells[place] for cells in body] for place in range(width)]
    numbers = [_integers(column) for column in columns]
    place = _documents(head, numbers)
    if place is None:
        # Of two columns of numbers either may be the documents.
        return failed("ambiguous") if sum(column is not None for column in numbers) > 1 else None
    documents = numbers[place] or ()
    ranks = next(
        (n for name, n in zip(head, numbers, strict=False) if n and _RANK.search(name)), ()
    )
    if ranks and ranks is not documents and len(set(ranks)) == len(ranks):
        return by_scores([(d, Score(-r)) for d, r in zip(documents, ranks, strict=True)])
    for name, column in zip(head, columns, strict=False):
        if _SCORE.search(name) and column is not columns[place]:
            return by_scores([(d, score(cell)) for d, cell in zip(documents, column, strict=True)])
    return Found(tuple(documents))


def _integers(column: Sequence[str]) -> tuple[int, ...] | None:
    """Return a column's identifiers, None where a cell is none."""
    found = tuple(number for cell in column if (number := single(cell)) is not None)
    return found if len(found) == len(column) > 0 else None


def _documents(head: Sequence[str], numbers: Sequence[tuple[int, ...] | None]) -> int | None:
    """Return the place of the column that holds the documents."""
    for place, name in enumerate(head[: len(numbers)]):
        if numbers[place] and _DOCUMENT.search(name) and not _RANK.search(name):
            return place
    counting = tuple(range(1, 1 + max((len(column or ()) for column in numbers), default=0)))
    places = [place for place, column in enumerate(numbers) if column and column != counting]
    return places[0] if len(places) == 1 and not head else None
