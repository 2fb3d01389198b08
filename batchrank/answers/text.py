"""Reads a ranking out of an answer in words, and refuses where an order would be a guess."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from batchrank.answers.lexing import Kind, Token, tokens
from batchrank.answers.mentions import is_announced, judge, sentences
from batchrank.answers.reading import Found, failed
from batchrank.answers.scores import by_pairs, by_scores
from batchrank.answers.sequences import Item, Run, level, runs

_REFUSAL = re.compile(
    r"\b(?:sorry|apologi[sz]e|cannot|unable|decline|(?:can|won|could)['’]t)\b|抱歉|无法|無法|不能",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(r"\[\s?\]\s?>\s?\[\s?\]")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A way to read the answer: `count` documents, `announced` where words lead up to it."""

    found: Found
    count: int
    announced: bool


def read_text(text: str, documents: int, *, cut: bool = False) -> Found:
    """Return the ranking in cleaned `text`, or why there is none.

    `cut` says that the end of the answer is lost. Of several rankings the one that names most
    documents counts; of equals the first, or the last that words such as "final ranking" lead to.
    """
    lexed = list(tokens(text, documents))
    strongest = level(lexed)
    found = runs(lexed, strongest)
    if not any(run.has_arrows for run in found):
        rated = _rated([item for run in found for item in run.items], documents, strongest, cut=cut)
        if rated is not None:
            return rated
    candidates: list[_Candidate] = []
    reason = ""
    for group in sentences(text, found, strongest):
        reading = judge(text, group, strongest, cut=cut)
        if reading.numbers:
            count = _count(reading, documents)
            candidates.append(_Candidate(reading, count, is_announced(text, group[0])))
        elif reading.notes[0] == "ambiguous":
            reason = "ambiguous"
    best = max((candidate.count for candidate in candidates), default=0)
    lines = _read_lines(lexed, found, strongest)
    # An echo of the passages is no reason to doubt a ranking that follows it.
    if lines and (_count(lines, documents) > best or (not lines.numbers and best < 2)):
        return lines
    if not candidates:
        return failed(reason or _failure(text))
    return _choose([candidate for candidate in candidates if candidate.count == best])


def _choose(candidates: Sequence[_Candidate]) -> Found:
    announced = [candidate for candidate in candidates if candidate.announced]
    chosen = (announced[-1] if announced else candidates[0]).found
    if all(candidate.found.numbers == chosen.numbers for candidate in candidates):
        return chosen
    return Found(chosen.numbers, (*chosen.notes, "several"))


def _rated(items: Sequence[Item], documents: int, strongest: Kind, *, cut: bool) -> Found | None:
    """Order documents by their scores, where every one has its own; None where not."""
    first: dict[int, Item] = {}
    for item in items:
        for number in item.token.numbers:
            first.setdefault(number, item)
    if cut and len(first) > 2:
        # The last score may be cut, and with it the document's place.
        first.popitem()
    if len(first) < 2:
        return None
    if all(item.rated for item in first.values()):
        return by_scores([(number, item.rating) for number, item in first.items()])
    pairs = [(number, item.pair) for number, item in first.items() if item.pair is not None]
    if len(pairs) < len(first):
        return None
    return by_pairs(pairs, documents, identified=strongest is not Kind.NUMBER)


def _read_lines(lexed: Sequence[Token], found: Sequence[Run], strongest: Kind) -> Found | None:
    """Read a list with one document a line and prose after it; None where there is none.

    Lines without list marks that go up through the identifiers are the prompt's own order: an
    echo of the passages, or a comment on each.
    """
    items = {item.index: item for run in found for item in run.items}
    numbers: list[int] = []
    marked = prose = False
    line_start = True
    for index, token in enumerate(lexed):
        if token.kind is Kind.LINE:
            line_start = True
        elif line_start and index in items:
            numbers += items[index].token.numbers[:1]
            line_start = False
        elif token.kind in (Kind.MARK, Kind.NUMBER):
            marked |= line_start
        elif token.kind is Kind.WORD:
            prose |= not line_start
            line_start = False
    if len(numbers) < 2 or not prose:
        return None
    rising = all(a < b for a, b in pairwise(numbers))
    if not marked and rising and (numbers[0] == 1 or len(numbers) > 2):
        return failed("no-ranking" if strongest is Kind.NUMBER else "echo")
    return Found(tuple(numbers))


def _count(found: Found, documents: int) -> int:
    return len({number for number in found.numbers if 0 <= number <= documents})


def _failure(text: str) -> str:
    """Say why an answer without a ranking has none."""
    if _REFUSAL.search(text):
        return "refusal"
    return "echo" if _TEMPLATE.search(text) else "no-ranking"
