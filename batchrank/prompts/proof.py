"""Proves before the first call that a template shows what it should, in prompts of any size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from string import ascii_lowercase, ascii_uppercase

from batchrank.errors import PromptError
from batchrank.prompts.template import LISTWISE, Template

_QUERY = "what is shown to whom?"
_ALL_SIZES = 30
"""Up to so many documents every size is tried; beyond it the largest alone."""
_REHEARSED = 4
"""The preflight shows so many, however few a window of the job has."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}>")
"""Of a thing that is no text, as Python writes it."""
_WORDS = 100
"""Of a document, as many as a usual cut leaves."""


def prove(template: Template, most: int) -> None:
    """Render prompts of up to `most` documents; PromptError says what one of them lacks.

    The query and each document have to stand in the prompt unchanged. Each document of several has
    to have its own identifier between it and the one before, or right behind it on its line.
    """
    listwise = template.kind in LISTWISE
    most = max(most, _REHEARSED) if listwise else 1
    query = None if template.kind == "likelihood" else _QUERY
    labels: Sequence[str] = ()
    if template.kind == "letters":
        labels = ascii_uppercase
    elif listwise:
        labels = [str(number) for number in range(1, most + 1)]
    for documents in _trials(most):
        count = len(documents)
        # Of one size every number that may be asked for.
        for wanted in range(1, count + 1) if count == min(most, _ALL_SIZES) else {1, count}:
            text = template.render(
                documents, query=query, wanted=wanted, example="[2]", labels=ascii_uppercase
            )
            if (lack := _lack(text, query, documents, labels)) is not None:
                size = f"{count} document{'s' if count > 1 else ''}"
                raise PromptError(f"{template.where} makes a prompt of {size} {lack}")


def _trials(most: int) -> Iterator[tuple[str, ...]]:
    """Every number of documents; then documents without text, and of the same text."""
    every = tuple(_document(number) for number in range(most))
    for size in sorted({*range(1, min(most, _ALL_SIZES) + 1), most}):
        yield every[:size]
    yield ("",)
    if most > 1:
        yield (every[0], "", every[1])
        yield (every[0], every[1], every[0])


def _document(number: int) -> str:
    tag = "".join(ascii_lowercase[number // 26**power % 26] for power in (2, 1, 0))
    return " ".join((f"Trial {tag}", *(f"of {tag}" for _ in range(_WORDS)), "ends"))


def _lack(
    text: str, query: str | None, documents: Sequence[str], labels: Sequence[str]
) -> str | None:
    """What a prompt lacks, in the words behind "a prompt of 3 documents"; None for nothing."""
    if _ADDRESS.search(text):
        return "with an address that is another one in each run: add () to call a function"
    if query is not None and query not in text:
        return "without the query"
    shown = sorted(
        (start, document) for document in {*documents} - {""} for start in _starts(text, document)
    )
    missing = {*documents} - {"", *(document for _, document in shown)}
    if missing:
        number = min(documents.index(document) for document in missing) + 1
        return f"that doesn't show document {number}, or not all of it as it is"
    return _mixed_up(text, shown, documents, labels) if labels else None


def _mixed_up(
    text: str, shown: Sequence[tuple[int, str]], documents: Sequence[str], labels: Sequence[str]
) -> str | None:
    """What is wrong with the identifiers in a prompt, worded as `_lack` does."""
    ends = [0, *(start + len(document) for start, document in shown)]
    before = [text[end:start] for end, (start, _) in zip(ends, shown, strict=False)]
    behind = [text[end:start] for end, (start, _) in zip(ends[1:], shown[1:], strict=False)]
    behind.append(text[ends[-1] :].partition("\n")[0])
    unnamed = [_unnamed(side, shown, documents, labels) for side in (before, behind)]
    if None in unnamed:
        if (again := _named_again(before, shown, documents, labels, text[ends[-1] :])) is None:
            return None
        return f"with a second {again.strip()!r} behind the documents, which names none of them"
    label = labels[unnamed[0] or 0]
    return f"without an identifier such as [{label}] at document {(unnamed[0] or 0) + 1}"


def _named_again(
    before: Sequence[str],
    shown: Sequence[tuple[int, str]],
    documents: Sequence[str],
    labels: Sequence[str],
    rest: str,
) -> str | None:
    """What leads a document in and also something else in the `rest` of the prompt, or None.

    What follows there may be the form of an answer: `[2] > [1]`.
    """
    for lead, (_, document) in zip(before, shown, strict=False):
        label = labels[documents.index(document)]
        start = lead.rfind("\n", 0, lead.rfind(label) + 1) + 1
        if label in lead[start:]:
            again = re.compile(rf"^[ \t]*{re.escape(lead[start:])}(?=[^\s>,;=])", re.MULTILINE)
            if again.search(rest):
                return lead[start:]
    return None


def _starts(text: str, document: str) -> Iterator[int]:
    start = text.find(document)
    while start >= 0:
        yield start
        start = text.find(document, start + len(document))


def _unnamed(
    beside: Sequence[str],
    shown: Sequence[tuple[int, str]],
    documents: Sequence[str],
    labels: Sequence[str],
) -> int | None:
    """The first document that has a text and not its own label beside it."""
    for place, document in enumerate(documents):
        around = "0-9" if labels[place].isdigit() else "A-Za-z"
        label = re.compile(rf"(?<![{around}]){labels[place]}(?![{around}])")
        if document and not any(
            one == document and label.search(text)
            for text, (_, one) in zip(beside, shown, strict=True)
        ):
            return place
    return None
