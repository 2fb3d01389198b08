"""A tiny real completion that proves that a server answers, and keeps to a form."""

from __future__ import annotations

from batchrank.answers import read
from batchrank.answers.forms import max_tokens
from batchrank.values import Answer, ChatPrompt, Form, Status

_DOCUMENTS = 9


def trial(form: Form) -> ChatPrompt:
    """Asks for a word; under a constraint the model can only write an identifier."""
    limit = max_tokens(form, _DOCUMENTS, 1)
    return ChatPrompt("Write the word hello.", _DOCUMENTS, 1, form, limit)


def proves(answer: Answer, form: Form) -> bool:
    """Whether the answer to `trial(form)` kept to the form; any answer keeps to free text."""
    return form is Form.TEXT or read(answer, _DOCUMENTS, 1).status is Status.OK
