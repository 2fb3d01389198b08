"""The one other request worth making after a request that the server could not answer."""

from __future__ import annotations

from batchrank.calls import Answer, ChatPrompt, Prompt
from batchrank.errors import BadResponseError, ContextOverflowError, ServerError
from batchrank.prompts.render import QueryTexts, text_of
from batchrank.readings.base import Means, Reader
from batchrank.values import Window

_UNTOLD_SHARE = 0.5
"""Of each document, where the server gives no numbers."""
_MARGIN = 0.05
_LEAST = 0.1
"""The least part of a document that is still worth showing."""


def prompt_after(
    error: ServerError,
    reader: Reader,
    texts: QueryTexts,
    window: Window,
    means: Means,
    first: Prompt,
) -> Prompt | None:
    """Shorter documents where they did not fit, another form where no answer could be read.

    None where neither can help. It is another request, so it has a key of its own.
    """
    if isinstance(error, ContextOverflowError):
        share = _share_that_fits(error, texts, window, first)
        if share < _LEAST:
            return None
        return reader.prompt(texts.shortened(share), window, means)
    if isinstance(error, BadResponseError):
        return reader.second(texts, window, means, first, Answer(""))
    return None


def _share_that_fits(
    error: ContextOverflowError, texts: QueryTexts, window: Window, prompt: Prompt
) -> float:
    """The part of each document that can stay: all that is too much has to go from them."""
    if not error.prompt_tokens or not error.context:
        return _UNTOLD_SHARE
    answer = prompt.max_tokens if isinstance(prompt, ChatPrompt) else 0
    share = min(1.0, (error.context - answer) / error.prompt_tokens)
    documents = sum(len(text) for text in texts.shown(window))
    return 1 - (1 - share) * len(text_of(prompt)) / max(1, documents) - _MARGIN
