"""Scores one document by how much likelier "yes" is than "no" as an answer's first token.

Relevance generation (Liang et al. 2022), as log-odds: ln P(yes) − ln P(no).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from batchrank.calls import Answer, ChatPrompt, Prompt
from batchrank.prompts.render import QueryTexts
from batchrank.prompts.template import Kind
from batchrank.readings.base import Means
from batchrank.readings.first_token import one_token
from batchrank.readings.scores import scored, unusable
from batchrank.values import Permutation, Window

_YES = frozenset(("yes", "是"))
_NO = frozenset(("no", "否", "不"))
_AROUND = " \t\n\r.,:;*\"'`▁Ġ"


@dataclass(frozen=True, slots=True)
class YesNo:
    """Windows of one document; needs `Means.top_logprobs`."""

    kind: ClassVar[Kind] = "binary"
    most: ClassVar[int] = 1
    scores: ClassVar[bool] = True

    def wanted(self, window: Window) -> int:
        """See `Reader.wanted`."""
        return len(window.shown)

    def prompt(self, texts: QueryTexts, window: Window, means: Means) -> ChatPrompt:
        """See `Reader.prompt`."""
        text = means.template.render(texts.shown(window), query=texts.query)
        return one_token(text, 1, means)

    def read(self, window: Window, answer: Answer) -> Permutation:
        """See `Reader.read`. Of two words of which one did not come back, that one is bounded."""
        words = [(token.strip(_AROUND).lower(), logprob) for token, logprob in answer.scored]
        yes = _logsum(logprob for word, logprob in words if word in _YES)
        no = _logsum(logprob for word, logprob in words if word in _NO)
        if yes is None and no is None:
            return unusable(window, "no-score")
        # What did not come back is less likely than anything that did.
        least = min(logprob for _, logprob in words)
        return scored(
            window, ((yes if yes is not None else least) - (no if no is not None else least),)
        )

    def second(
        self, _texts: QueryTexts, _window: Window, _means: Means, _first: Prompt, _answer: Answer
    ) -> None:
        """None: the same token would come again."""
        return


def _logsum(logprobs: Iterable[float]) -> float | None:
    found = list(logprobs)
    if not found:
        return None
    highest = max(found)
    return highest + math.log(sum(math.exp(logprob - highest) for logprob in found))
