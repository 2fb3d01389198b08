"""Makes a window fit the context of a model slot: shorter documents first, then fewer of them."""

from __future__ import annotations

from dataclasses import dataclass

from batchrank.prompts.render import MAX_QUERY_TOKENS

MIN_DOC_TOKENS = 80
"""Below this a document says too little to be judged: the window is made smaller instead."""
MIN_WINDOW = 2
_FRAME_TOKENS = 350
"""Instruction, reminder and chat template, in the wordiest built-in template."""
_TOKENS_BESIDE_DOCUMENT = 8
"""Identifier, line ends, and what cutting by an estimate can miss."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What goes into one prompt: documents, and tokens of each."""

    window_size: int
    max_doc_tokens: int


def tokens_needed(fit: Fit, answer_tokens: int) -> int:
    """Context that the largest prompt and its answer can take."""
    return (
        _FRAME_TOKENS
        + 2 * MAX_QUERY_TOKENS
        + fit.window_size * (fit.max_doc_tokens + _TOKENS_BESIDE_DOCUMENT)
        + answer_tokens
    )


def fit_context(wanted: Fit, answer_tokens: int, context: int) -> Fit | None:
    """The largest fit within `wanted` whose prompts hold in `context` tokens; None if none does."""
    room = context - tokens_needed(Fit(0, 0), answer_tokens)
    floor = min(wanted.max_doc_tokens, MIN_DOC_TOKENS)
    documents = min(wanted.window_size, room // (floor + _TOKENS_BESIDE_DOCUMENT))
    if documents < min(wanted.window_size, MIN_WINDOW):
        return None
    tokens = min(wanted.max_doc_tokens, room // documents - _TOKENS_BESIDE_DOCUMENT)
    return Fit(documents, tokens)
