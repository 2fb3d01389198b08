"""Prepares one query for prompts: every text cut once, before any window is made."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

from batchrank.calls import ChatPrompt, LikelihoodPrompt, Prompt, RerankPrompt
from batchrank.prompts.neutral import is_harmless, neutral
from batchrank.prompts.tokens import TokenCounter, odd_bytes
from batchrank.values import Document, Request, Window

MAX_QUERY_TOKENS = 200
"""A query stands twice in a prompt, so it is bounded like a document."""

_LONGEST_LOOK = 40
"""Characters a wanted token worth reading, so that a document of megabytes costs like any other."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How many tokens of a document are shown."""

    counter: TokenCounter
    max_doc_tokens: int


class QueryTexts:
    """A query and its documents as prompts show them; memory is one cut text a document.

    `depth` is how many of the request's candidates can come up in windows.
    """

    def __init__(self, request: Request, depth: int, cut: Cut) -> None:
        query = neutral(request.query.text).replace("\n", " ")
        self.query = cut.counter.cut(query, MAX_QUERY_TOKENS)
        self._shown = {
            document.docid: _shown(document_text(document), cut)
            for document in request.candidates[:depth]
        }

    def shortened(self, share: float) -> QueryTexts:
        """The same with only the first `share` of each document's characters."""
        other = copy(self)
        other._shown = {
            docid: text[: math.ceil(len(text) * share)] for docid, text in self._shown.items()
        }
        return other

    def shown(self, window: Window) -> list[str]:
        """The texts of a window's documents in the order of the prompt."""
        return [self._shown[docid] for docid in window.shown]


def _shown(text: str, cut: Cut) -> str:
    text = text[: cut.max_doc_tokens * _LONGEST_LOOK]
    odd = odd_bytes(text)  # one look at every byte, for both
    if is_harmless(odd):
        return cut.counter.cut(text, cut.max_doc_tokens, odd)
    return cut.counter.cut(neutral(text), cut.max_doc_tokens)


def text_of(prompt: Prompt) -> str:
    """All that a model reads of a prompt, for counting its tokens."""
    match prompt:
        case ChatPrompt(text=text):
            return text
        case LikelihoodPrompt(text=text, target=target):
            return text + target
        case RerankPrompt(query=query, documents=documents):
            # A cross-encoder reads the query once with each document.
            return "\n".join(f"{query}\n{document}" for document in documents)


def document_text(document: Document) -> str:
    """What a document says: its title, where it has one of its own, above its text."""
    if not document.title or document.title == document.text:
        return document.text
    return f"{document.title}\n{document.text}"
