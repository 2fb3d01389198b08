"""Prepares one query for prompts: every text cut once, before any window is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from batchrank.prompts.neutral import neutral
from batchrank.prompts.template import Template
from batchrank.prompts.tokens import TokenCounter
from batchrank.values import Document, Form, Prompt, Request, Window

MAX_QUERY_TOKENS = 200
"""A query stands twice in a prompt, so it is bounded like a document."""

_LONGEST_LOOK = 40
"""Characters a wanted token worth reading, so that a document of megabytes costs like any other."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How long things may be: tokens of a document, and of reasoning before an answer."""

    counter: TokenCounter
    max_doc_tokens: int
    thinking_tokens: int = 0


class QueryPrompts:
    """Renders the windows of one query; memory is one cut text a document.

    `depth` is how many of the request's candidates can come up in windows.
    """

    def __init__(self, request: Request, depth: int, template: Template, cut: Cut) -> None:
        self._template = template
        self._cut = cut
        query = neutral(request.query.text).replace("\n", " ")
        self._query = cut.counter.cut(query, MAX_QUERY_TOKENS)
        longest = cut.max_doc_tokens * _LONGEST_LOOK
        self._shown = {
            document.docid: cut.counter.cut(neutral(_text(document)[:longest]), cut.max_doc_tokens)
            for document in request.candidates[:depth]
        }

    def prompt(self, window: Window, wanted: int, form: Form) -> Prompt:
        """The prompt that shows `window` and asks for its `wanted` best."""
        shown = self._shown
        documents = [shown[docid] for docid in window.shown]
        prompt = self._template.render(self._query, documents, wanted, form)
        if self._cut.thinking_tokens:
            return replace(prompt, max_tokens=prompt.max_tokens + self._cut.thinking_tokens)
        return prompt


def _text(document: Document) -> str:
    if not document.title or document.title == document.text:
        return document.text
    return f"{document.title}\n{document.text}"
