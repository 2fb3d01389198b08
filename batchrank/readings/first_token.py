"""Orders a window by one token: each document is a letter, the likelier letters come first.

First-token log-probabilities as in FIRST (Reddy et al. 2024), without its training. A document
whose letter is not among the alternatives that the server returns keeps its prior order below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import ClassVar

from batchrank.answers import permutation
from batchrank.answers.reading import Reading, fallback
from batchrank.calls import Answer, ChatPrompt, Form, Prompt
from batchrank.prompts.render import QueryTexts
from batchrank.prompts.template import Kind
from batchrank.readings.base import Means
from batchrank.values import Permutation, Status, Window

LETTERS = len(ascii_uppercase)
_AROUND = " \t\n\r[](){}.,:;*\"'`▁ĠĊ"
"""What a token may hold beside its letter: brackets, and blanks as vocabularies write them."""


@dataclass(frozen=True, slots=True)
class FirstToken:
    """Needs `Means.top_logprobs` of at least the window's size to be able to name all of it."""

    kind: ClassVar[Kind] = "letters"
    most: ClassVar[int] = LETTERS
    scores: ClassVar[bool] = False

    def wanted(self, window: Window) -> int:
        """See `Reader.wanted`."""
        return window.wants

    def prompt(self, texts: QueryTexts, window: Window, means: Means) -> ChatPrompt:
        """See `Reader.prompt`."""
        documents = texts.shown(window)
        text = means.template.render(documents, query=texts.query, labels=ascii_uppercase)
        return one_token(text, len(documents), means)

    def read(self, window: Window, answer: Answer) -> Permutation:
        """See `Reader.read`."""
        found: dict[int, float] = {}
        for token, logprob in answer.scored:
            letter = token.strip(_AROUND)
            place = ascii_uppercase.find(letter) + 1 if len(letter) == 1 else 0
            # " A" and "A" are two tokens for one letter: the likelier one counts.
            if 1 <= place <= len(window.shown):
                found[place] = max(logprob, found.get(place, logprob))
        if not found:
            return permutation(window, fallback("no-ranking"))
        named = tuple(sorted(found, key=lambda place: -found[place]))
        missing = len(named) < window.wants
        reading = Reading(
            named,
            Status.REPAIRED if missing else Status.OK,
            ("missing",) if missing else (),
        )
        return replace(permutation(window, reading), scores=tuple(found[n] for n in named))

    def second(
        self, _texts: QueryTexts, _window: Window, _means: Means, _first: Prompt, _answer: Answer
    ) -> None:
        """None: the same token would come again."""
        return


def one_token(text: str, documents: int, means: Means) -> ChatPrompt:
    """A prompt of which only the first token's alternatives count."""
    return ChatPrompt(text, documents, 1, Form.TEXT, 1, top_logprobs=means.top_logprobs)
