"""Looks at the beginning of an input: how long lists and documents are, in what language."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from batchrank.errors import LineError
from batchrank.formats.lines import RawLine
from batchrank.formats.requests import parse_request
from batchrank.prompts.render import document_text
from batchrank.prompts.tokens import estimate
from batchrank.values import Request

_HAN = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff]")
"""Japanese is written with both."""
_MOSTLY = 0.5
_LOOKED_AT = 200
"""Characters of a query that are looked at for its language."""


@dataclass(slots=True)
class Survey:
    """What was seen: counts of lines, candidates of each query, tokens of each document."""

    queries: int = 0
    unusable: int = 0
    candidates: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    weighted: int = 0
    """Queries that say their weight."""
    chinese: int = 0
    """Queries that are written in Chinese, at least in part."""

    @property
    def is_chinese(self) -> bool:
        """Whether most queries are in Chinese."""
        return self.chinese > self.queries * _MOSTLY

    def add(self, request: Request) -> None:
        """Count one more query."""
        self.queries += 1
        self.candidates.append(len(request.candidates))
        self.tokens += (round(estimate(document_text(one))) for one in request.candidates)
        self.weighted += request.weight != 1
        text = request.query.text[:_LOOKED_AT]
        self.chinese += bool(_HAN.search(text)) and not _KANA.search(text)


def at_share(numbers: list[int], share: float) -> int:
    """The number at `share` (0 least, 1 most) of all when sorted, 0 of none."""
    return sorted(numbers)[round(share * (len(numbers) - 1))] if numbers else 0


def survey(blocks: Iterable[list[RawLine]]) -> Survey:
    """Count what the lines hold; those that can't be used are counted and no more."""
    found = Survey()
    for block in blocks:
        for line in block:
            try:
                request = parse_request(line.data).request
            except LineError:
                found.unusable += 1
            else:
                found.add(request)
    return found
