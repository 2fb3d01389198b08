"""Lets the model explain first and reads the identifiers of its last line, for diagnosis."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar

from batchrank.answers import permutation, read
from batchrank.answers.forms import example, max_tokens
from batchrank.answers.reading import fallback
from batchrank.answers.reasoning import without_reasoning
from batchrank.calls import Answer, ChatPrompt, Form, Prompt
from batchrank.prompts.render import QueryTexts
from batchrank.prompts.template import Kind
from batchrank.readings.base import Means
from batchrank.readings.identifiers import LARGER
from batchrank.values import Permutation, Window

EXPLANATION_TOKENS = 512
_CONCLUSION = re.compile(
    r"^[ \t*#>]*(?:Ranking|排序)[ \t*]*[:：][ \t*]*", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Explain:
    """The explanation stays in the stored answer, where `batchrank inspect` shows it."""

    kind: ClassVar[Kind] = "explain"
    most: ClassVar[None] = None
    scores: ClassVar[bool] = False

    def wanted(self, window: Window) -> int:
        """See `Reader.wanted`."""
        return window.wants

    def prompt(self, texts: QueryTexts, window: Window, means: Means) -> ChatPrompt:
        """See `Reader.prompt`."""
        documents = texts.shown(window)
        answer = max_tokens(Form.TEXT, len(documents), window.wants)
        return ChatPrompt(
            means.template.render(
                documents,
                query=texts.query,
                wanted=window.wants,
                example=example(Form.TEXT, window.wants),
            ),
            len(documents),
            window.wants,
            Form.TEXT,
            EXPLANATION_TOKENS + answer + means.thinking_tokens,
        )

    def read(self, window: Window, answer: Answer) -> Permutation:
        """See `Reader.read`: what an explanation mentions is never taken for a ranking."""
        text, _ = without_reasoning(answer.text)
        conclusions = list(_CONCLUSION.finditer(text))
        if not conclusions:
            return permutation(
                window, fallback("cut" if answer.finish == "length" else "no-ranking")
            )
        last = replace(answer, text=text[conclusions[-1].end() :])
        return permutation(window, read(last, len(window.shown), window.wants))

    def second(
        self, _texts: QueryTexts, _window: Window, _means: Means, first: Prompt, answer: Answer
    ) -> ChatPrompt | None:
        """More room for an explanation that did not come to its end."""
        assert isinstance(first, ChatPrompt)
        if answer.finish != "length":
            return None
        return replace(first, max_tokens=first.max_tokens * LARGER)
