"""Prepares one query for prompts: every text cut once, before any window is made."""

from __future__ import annotations

from collections.abc import Iterable

from batchrank.prompts.neutral import neutral
from batchrank.prompts.template import Template
from batchrank.prompts.tokens import TokenCounter
from batchrank.values import Document, Form, Prompt, Query, Window

MAX_QUERY_TOKENS = 200
"""A query stands twice in a prompt, so it is bounded like a document."""

_LONGEST_LOOK = 40
"""Characters a wanted token worth reading, so that a document of megabytes costs like any other."""


class QueryPrompts:
    """Renders the windows of one query; memory is one cut text a document."""

    def __init__(
        self,
        query: Query,
        documents: Iterable[Document],
        template: Template,
        counter: TokenCounter,
        max_doc_tokens: int,
    ) -> None:
        self._template = template
        self._query = counter.cut(neutral(query.text).replace("\n", " "), MAX_QUERY_TOKENS)
        longest = max_doc_tokens * _LONGEST_LOOK
        self._shown = {
            document.docid: counter.cut(neutral(_text(document)[:longest]), max_doc_tokens)
            for document in documents
        }

    def prompt(self, window: Window, wanted: int, form: Form) -> Prompt:
        """The prompt that shows `window` and asks for its `wanted` best."""
        shown = self._shown
        documents = [shown[docid] for docid in window.shown]
        return self._template.render(self._query, documents, wanted, form)


def _text(document: Document) -> str:
    if not document.title or document.title == document.text:
        return document.text
    return f"{document.title}\n{document.text}"
