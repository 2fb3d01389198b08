"""Whether a bad answer deserves one other request, and which."""

from __future__ import annotations

from dataclasses import replace

from batchrank.answers import Reading
from batchrank.values import Answer, Form, Prompt, Status

_LARGER = 4


def larger_limit(prompt: Prompt, answer: Answer, reading: Reading) -> Prompt | None:
    """The same prompt with more room for an answer that was cut before it said anything."""
    if reading.status is Status.FALLBACK and answer.finish == "length":
        return replace(prompt, max_tokens=prompt.max_tokens * _LARGER)
    return None


def other_form(form: Form, answer: Answer, reading: Reading) -> Form | None:
    """Free text where a constrained form brought nothing though it ended by itself.

    Asking the same again can't help at temperature 0, and text is what every model can write.
    """
    if reading.status is Status.FALLBACK and answer.finish != "length" and form is not Form.TEXT:
        return Form.TEXT
    return None
