"""Scores one document by how likely it makes the query (Sachan et al. 2022, UPR).

The score is the summed log-probability of the query's tokens behind the document, so a base model
serves and nothing has to be read out of text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from batchrank.calls import Answer, LikelihoodPrompt, Prompt
from batchrank.prompts.render import QueryTexts
from batchrank.prompts.template import Kind
from batchrank.readings.base import Means
from batchrank.readings.scores import scored, unusable
from batchrank.values import Permutation, Window


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Windows of one document."""

    kind: ClassVar[Kind] = "likelihood"
    most: ClassVar[int] = 1
    scores: ClassVar[bool] = True

    def wanted(self, window: Window) -> int:
        """See `Reader.wanted`."""
        return len(window.shown)

    def prompt(self, texts: QueryTexts, window: Window, means: Means) -> LikelihoodPrompt:
        """See `Reader.prompt`. A blank that ends the text belongs to the query's first token."""
        text = means.template.render(texts.shown(window))
        before = text.rstrip(" ")
        return LikelihoodPrompt(before, text[len(before) :] + texts.query)

    def read(self, window: Window, answer: Answer) -> Permutation:
        """See `Reader.read`. A sum over part of the query would be too high: it is unusable."""
        if not answer.scored or answer.finish != "stop":
            return unusable(window, "cut" if answer.scored else "no-score")
        return scored(window, (sum(logprob for _, logprob in answer.scored),))

    def second(
        self, _texts: QueryTexts, _window: Window, _means: Means, _first: Prompt, _answer: Answer
    ) -> None:
        """None: there is no other way to ask."""
        return
