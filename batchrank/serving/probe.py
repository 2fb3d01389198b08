"""A tiny real call that proves that a server answers, and keeps to a form."""

from __future__ import annotations

from collections.abc import Collection

from batchrank.answers import read
from batchrank.answers.forms import max_tokens
from batchrank.calls import Answer, ChatPrompt, Form, LikelihoodPrompt, Prompt, RerankPrompt
from batchrank.values import Status

_DOCUMENTS = 9
_LIKELIHOOD = LikelihoodPrompt("The opposite of small is", " large")
_RERANK = RerankPrompt("hello", ("Hello to all of you.", "Rice is boiled in water."))


def probe(form: Form) -> ChatPrompt:
    """Asks for a word; under a constraint the model can only write an identifier."""
    limit = max_tokens(form, _DOCUMENTS, 1)
    return ChatPrompt("Write the word hello.", _DOCUMENTS, 1, form, limit)


def probe_of(readings: Collection[str], form: Form) -> Prompt:
    """The probe of a server that answers for these readings, by their names in a job spec."""
    if not set(readings) <= {"likelihood", "rerank"}:
        return probe(form)
    return _LIKELIHOOD if "likelihood" in readings else _RERANK


def proves(answer: Answer, asked: Prompt) -> bool:
    """Whether the answer to a probe is of its form; any answer keeps to free text."""
    if not isinstance(asked, ChatPrompt):
        return bool(answer.scored)
    return asked.form is Form.TEXT or read(answer, _DOCUMENTS, 1).status is Status.OK
