"""Reads identifiers that the model writes: all of a window's, or only the best it wants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from batchrank.answers import permutation, read
from batchrank.answers.forms import example, max_tokens
from batchrank.calls import Answer, ChatPrompt, Form, Prompt
from batchrank.prompts.render import QueryTexts
from batchrank.prompts.template import Kind
from batchrank.readings.base import Means
from batchrank.values import Permutation, Window

LARGER = 4
_BLANKS = 20
"""So many at the end of an answer that was cut are no indentation any more."""


@dataclass(frozen=True, slots=True)
class Identifiers:
    """`full` asks for every document of a window, in place of those it wants."""

    full: bool

    kind: ClassVar[Kind] = "direct"
    most: ClassVar[None] = None
    scores: ClassVar[bool] = False

    def wanted(self, window: Window) -> int:
        """See `Reader.wanted`."""
        return len(window.shown) if self.full else window.wants

    def prompt(self, texts: QueryTexts, window: Window, means: Means) -> ChatPrompt:
        """See `Reader.prompt`."""
        documents = texts.shown(window)
        wanted = self.wanted(window)
        return ChatPrompt(
            means.template.render(
                documents, query=texts.query, wanted=wanted, example=example(means.form, wanted)
            ),
            len(documents),
            wanted,
            means.form,
            max_tokens(means.form, len(documents), wanted) + means.thinking_tokens,
        )

    def read(self, window: Window, answer: Answer) -> Permutation:
        """See `Reader.read`."""
        return permutation(window, read(answer, len(window.shown), self.wanted(window)))

    def second(
        self, texts: QueryTexts, window: Window, means: Means, first: Prompt, answer: Answer
    ) -> ChatPrompt | None:
        """More room for an answer that was cut; else free text, which every model can write.

        Asking the same again can't help at temperature 0, nor can more room for an answer that goes
        round in a circle, or in blanks, as JSON under a constraint may (vLLM, issue 38696).
        """
        assert isinstance(first, ChatPrompt)
        idles = len(answer.text) - len(answer.text.rstrip()) >= _BLANKS
        circles = "repeated" in self.read(window, answer).notes
        if answer.finish == "length" and not (idles or circles):
            return replace(first, max_tokens=first.max_tokens * LARGER)
        if first.form is Form.TEXT:
            return None
        return self.prompt(texts, window, replace(means, form=Form.TEXT))
