"""A versioned prompt template: jinja2 text of a kind, known in every key by its hash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import jinja2

from batchrank.errors import PromptError
from batchrank.prompts.sandbox import TextError, compiled, rendered

Kind = Literal["direct", "letters", "explain", "binary", "graded", "likelihood"]
"""What a template asks for: an order of documents (the first three), or a score of one document."""
LISTWISE: tuple[Kind, ...] = ("direct", "letters", "explain")
_DOCUMENTS = ("documents", "document", "count")
OFFERED: Mapping[Kind, tuple[str, ...]] = {
    "direct": (*_DOCUMENTS, "query", "wanted", "example"),
    "letters": (*_DOCUMENTS, "query", "labels"),
    "explain": (*_DOCUMENTS, "query", "wanted", "example"),
    "binary": (*_DOCUMENTS, "query"),
    "graded": (*_DOCUMENTS, "query", "example"),
    "likelihood": _DOCUMENTS,
}
"""The variables of each kind, beside `examples`."""


@dataclass(frozen=True, slots=True)
class Template:
    """`name` stands in outputs (`direct-en@1`), `digest` in keys; `language` is for people.

    `path` is what it was loaded by, and `first_line` where in that file its text starts.
    """

    name: str
    digest: str
    kind: Kind
    language: str
    text: jinja2.Template
    path: str = ""
    first_line: int = 1

    @property
    def where(self) -> str:
        """What a complaint about it starts with."""
        return f"template {self.path!r}"

    def render(
        self,
        documents: Sequence[str],
        *,
        query: str | None = None,
        wanted: int = 1,
        example: str = "",
        labels: Sequence[str] = (),
    ) -> str:
        """The text of one prompt.

        `documents` are neutralised, truncated texts as shown, the first of them also as `document`;
        `example` is how an answer looks; `labels` are the letters of the kind "letters". The query
        is not there for the kind "likelihood", whose target it is. Raises PromptError where the
        text fails on these documents.
        """
        values: dict[str, object] = {
            "documents": documents,
            "document": documents[0],
            "count": len(documents),
            "wanted": wanted,
            "example": example,
            "labels": labels,
        }
        if query is not None:
            values["query"] = query
        try:
            return rendered(self.text, values, sum(map(len, documents)) + len(query or ""))
        except TextError as error:
            raise text_error(self.where, self.first_line, error) from error


NO_TEMPLATE = Template("none", "", "direct", "", compiled("", (), ()))
"""For a reading that sends texts as they are."""


def text_error(where: str, first_line: int, error: TextError) -> PromptError:
    """What is wrong with a text that starts in line `first_line` of its file."""
    line = "" if error.line is None else f", line {first_line + error.line - 1}"
    return PromptError(f"{where}{line} (text): {error}")
