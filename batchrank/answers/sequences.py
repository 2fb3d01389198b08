"""Joins the identifiers of an answer in words into runs with no prose between them.

Bracketed identifiers win over labelled ones ("Document 3"), and those over bare numbers: only the
strongest kind in an answer can name a document; weaker numbers are ranks, counts or scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from batchrank.answers.lexing import Kind, Token
from batchrank.answers.scores import Score

_BRACKETED = frozenset({Kind.SPAN, Kind.BRACKET})
_ARROWS = frozenset({Kind.MORE, Kind.LESS})
_BREAKS = frozenset({Kind.WORD, Kind.GAP})
_EDGES = frozenset({Kind.LINE, Kind.COLON})
_RANGES = frozenset({Kind.SPAN, Kind.RANGE})


@dataclass(slots=True)
class Item:
    """One mention of one or more documents, and what rates it.

    `rated` says that a score belongs to it, readable or not; `pair` is a bare integer after it.
    """

    token: Token
    index: int
    rated: bool = False
    rating: Score | None = None
    pair: int | None = None


@dataclass(slots=True)
class Run:
    """Items that only separators, list marks and scores stand between."""

    items: list[Item] = field(default_factory=list)
    more: bool = False
    less: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """All numbers in the order in which they stand."""
        return tuple(number for item in self.items for number in item.token.numbers)

    @property
    def start(self) -> int:
        """Where in the text its first item starts."""
        return self.items[0].token.start

    @property
    def end(self) -> int:
        """Where in the text its last item ends."""
        return self.items[-1].token.end

    @property
    def has_arrows(self) -> bool:
        """Whether `>` or `<` joins items."""
        return self.more or self.less

    @property
    def is_range(self) -> bool:
        """Whether it is nothing but "4-7", which ranks nothing."""
        return len(self.items) == 1 and self.items[0].token.kind in _RANGES


def level(tokens: Sequence[Token]) -> Kind:
    """Return the strongest kind of identifier among `tokens`: BRACKET, LABEL or NUMBER."""
    kinds = {token.kind for token in tokens}
    if kinds & _BRACKETED:
        return Kind.BRACKET
    return Kind.LABEL if Kind.LABEL in kinds else Kind.NUMBER


def runs(tokens: Sequence[Token], strongest: Kind) -> list[Run]:
    """Return the runs of identifiers of the `strongest` kind."""
    found: list[Run] = []
    run = Run()
    arrows: set[Kind] = set()
    marks = _list_marks(tokens) if strongest is Kind.NUMBER else frozenset()
    pairs = _pairs(tokens, strongest)
    last: Item | None = None
    words = 0
    for index, token in enumerate(tokens):
        if token.kind in _BREAKS:
            run, arrows = Run(), set()
            words += 1
        elif token.kind in _ARROWS:
            arrows.add(token.kind)
        elif token.kind in (Kind.RATING, Kind.SCORE):
            if last and not last.rated and words <= _reach(token, strongest):
                last.rated, last.rating = True, token.rating
        elif index in pairs:
            if last and last.pair is None:
                last.pair = token.numbers[0]
        elif index not in marks and _is_item(tokens, index, strongest, bool(run.items)):
            last, words = Item(token, index), 0
            if not run.items:
                found.append(run)
            else:
                run.more |= Kind.MORE in arrows
                run.less |= Kind.LESS in arrows
            run.items.append(last)
            arrows = set()
    return found


def _reach(token: Token, strongest: Kind) -> float:
    """Return how many words may stand between a document and what rates it.

    The word "score" leaves no doubt, "8 out of 10" little; a percentage in prose may be anything.
    """
    if strongest is Kind.NUMBER:
        return 0
    if token.kind is Kind.RATING:
        return math.inf
    return 3 if token.rating and token.rating.unit == "fraction" else 0


def _is_item(tokens: Sequence[Token], index: int, strongest: Kind, joined: bool) -> bool:
    """Tell whether a token names documents, given the strongest kind in the answer."""
    kind = tokens[index].kind
    before = tokens[index - 1].kind if index else None
    after = tokens[index + 1].kind if index + 1 < len(tokens) else None
    if strongest is Kind.NUMBER:
        return kind in (Kind.NUMBER, Kind.RANGE)
    if kind in _BRACKETED or kind is strongest:
        return True
    if kind is not Kind.NUMBER:
        return False
    if strongest is Kind.BRACKET:
        # The prompt may have written the first bracket: "13 > [14] > [1]".
        at_edge = (before is None or before in _EDGES or before in _ARROWS) and (
            after is None or after is Kind.LINE or after in _ARROWS
        )
        return at_edge and (before in _ARROWS or after in _ARROWS)
    # "Documents 3, 1 and 2"
    return (
        joined
        and (before is Kind.JOIN or before in _ARROWS)
        and (after is None or after in _ARROWS or after in (Kind.JOIN, Kind.STOP, Kind.LINE))
    )


def _list_marks(tokens: Sequence[Token]) -> frozenset[int]:
    """Return where the numbers of a numbered list stand: "1. 3", "2. 1", in front of bare numbers.

    They are marks only if they count 1, 2, 3 …
    """
    places: list[int] = []
    line_start = True
    for index, token in enumerate(tokens[:-1]):
        numbered = token.kind is Kind.NUMBER and tokens[index + 1].kind is Kind.STOP
        if line_start and numbered:
            places.append(index)
        line_start = token.kind is Kind.LINE
    counted = [tokens[index].numbers[0] for index in places]
    return frozenset(places if counted == list(range(1, len(places) + 1)) else ())


def _pairs(tokens: Sequence[Token], strongest: Kind) -> frozenset[int]:
    """Return where the second numbers of pairs such as "[3]: 9" or "3: 9" stand.

    "[3]: 9 facts" is none: what a word follows counts something.
    """
    places: set[int] = set()
    links = (Kind.COLON,) if strongest is Kind.NUMBER else (Kind.COLON, Kind.DASH)
    for index in range(2, len(tokens)):
        first, link, second = tokens[index - 2 : index + 1]
        identifies = first.kind is strongest or first.kind in _BRACKETED
        is_pair = identifies and link.kind in links and second.kind is Kind.NUMBER
        counts = index + 1 < len(tokens) and tokens[index + 1].kind is Kind.WORD
        if is_pair and not counts and index - 2 not in places:
            places.add(index)
    return frozenset(places)
