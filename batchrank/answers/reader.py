"""Reads an answer: the strict forms at once, then data, tables and words, never by a guess."""

from __future__ import annotations

from functools import partial

from batchrank.answers.cleaning import LIMIT, is_open, plain, unwrapped, without_half_number
from batchrank.answers.reading import Found, Reading, fallback, settle
from batchrank.answers.reasoning import without_reasoning
from batchrank.answers.strict import numbers
from batchrank.answers.structured import read_structured
from batchrank.answers.tables import read_table
from batchrank.answers.text import read_text
from batchrank.calls import Answer
from batchrank.values import Status


def read(answer: Answer, documents: int, wanted: int) -> Reading:
    """Return what `answer` names of `documents` identifiers, of which `wanted` were asked for.

    OK is only an answer in a strict form (`3,1,2`, `[3] > [1] > [2]`, `{"ranking": [3, 1, 2]}`),
    with nothing else around it but reasoning in its tags, that names exactly `wanted` different
    identifiers. One that names more is kept whole and repaired, with the note "extra". Takes time
    linear in the answer, whatever it holds, and never fails: an unusable answer is a fallback.
    """
    reading = _strict(answer, answer.text, documents, wanted)
    if reading is not None:
        return reading
    text, unfinished = without_reasoning(answer.text)
    if not text.strip():
        return _without_text(answer, documents, wanted, unfinished=unfinished)
    reading = None if unfinished else _strict(answer, text, documents, wanted)
    return reading if reading is not None else _loose(answer, text, documents, wanted)


def _strict(answer: Answer, text: str, documents: int, wanted: int) -> Reading | None:
    """Read a strict answer; None for any other, and for one that may end in half a number."""
    found = numbers(text)
    if found is None:
        return None
    if answer.finish == "length" and without_half_number(text, documents) != text:
        return None
    return settle(Found(found), documents, wanted)


def _without_text(answer: Answer, documents: int, wanted: int, *, unfinished: bool) -> Reading:
    """Read an answer that is all reasoning: only what is strictly an answer by itself counts."""
    if unfinished or (answer.reasoning.strip() and answer.finish == "length"):
        return fallback("unfinished-reasoning")
    if not answer.text.strip() and answer.finish == "stop":
        reading = _strict(answer, answer.reasoning, documents, wanted)
        if reading is not None and reading.status is Status.OK:
            return Reading(reading.named, Status.REPAIRED, ("in-reasoning",))
    return fallback("empty")


def _loose(answer: Answer, text: str, documents: int, wanted: int) -> Reading:
    """Read an answer that is in no strict form."""
    own = unwrapped(text)
    body = plain(own)
    cut = answer.finish == "length" or len(own) > LIMIT or is_open(body)
    if cut:
        body = without_half_number(body, documents).rstrip()
    if not body:
        return fallback("empty")
    words = partial(read_text, documents=documents)
    found = read_structured(body, documents, words) or read_table(body) or words(body, cut=cut)
    notes = ("format", "cut") if cut else ("format",)
    return settle(Found(found.numbers, (*found.notes, *notes)), documents, wanted)
