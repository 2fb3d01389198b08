"""Scores one document by a grade from 0 to 10 that the model writes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar

from batchrank.answers.forms import max_tokens, write
from batchrank.answers.reasoning import without_reasoning
from batchrank.calls import Answer, ChatPrompt, Form, Prompt
from batchrank.prompts.render import QueryTexts
from batchrank.prompts.template import Kind
from batchrank.readings.base import Means
from batchrank.readings.scores import scored, unusable
from batchrank.values import Permutation, Status, Window

HIGHEST = 10
_EXAMPLE = 4
_STRICT = re.compile(
    r'\s*(?:(\d{1,2})|\[(\d{1,2})\]|\{\s*"ranking"\s*:\s*\[\s*(\d{1,2})\s*\]\s*\})\s*'
)
_OUT_OF = re.compile(r"(?<![\d.])(\d{1,2})\s*(?:/|out of)\s*10\b")
_NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?(?!\.?\d)")


@dataclass(frozen=True, slots=True)
class Graded:
    """Windows of one document; the grade is constrained where the server can."""

    kind: ClassVar[Kind] = "graded"
    most: ClassVar[int] = 1
    scores: ClassVar[bool] = True

    def wanted(self, window: Window) -> int:
        """See `Reader.wanted`."""
        return len(window.shown)

    def prompt(self, texts: QueryTexts, window: Window, means: Means) -> ChatPrompt:
        """See `Reader.prompt`."""
        return ChatPrompt(
            means.template.render(
                texts.shown(window), query=texts.query, example=write(means.form, (_EXAMPLE,))
            ),
            HIGHEST,
            1,
            means.form,
            max_tokens(means.form, HIGHEST, 1) + means.thinking_tokens,
            lowest=0,
        )

    def read(self, window: Window, answer: Answer) -> Permutation:
        """See `Reader.read`. Of several different numbers none is guessed to be the grade."""
        text, _ = without_reasoning(answer.text)
        if (strict := _STRICT.fullmatch(text)) is not None:
            grade = int(next(group for group in strict.groups() if group is not None))
            return (
                scored(window, (grade,)) if grade <= HIGHEST else unusable(window, "out-of-range")
            )
        told = set(_OUT_OF.findall(text)) or set(_NUMBER.findall(text))
        if len(told) != 1 or answer.finish == "length":
            return unusable(window, "ambiguous" if told else "no-score")
        value = float(told.pop())
        if value > HIGHEST:
            return unusable(window, "out-of-range")
        return replace(scored(window, (value,)), status=Status.REPAIRED, notes=("format",))

    def second(
        self, texts: QueryTexts, window: Window, means: Means, first: Prompt, _answer: Answer
    ) -> ChatPrompt | None:
        """Free text, where the constrained form brought no grade."""
        assert isinstance(first, ChatPrompt)
        if first.form is Form.TEXT:
            return None
        return self.prompt(texts, window, replace(means, form=Form.TEXT))
