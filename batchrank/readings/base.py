"""What a reading is: from a window to a prompt, and from an answer to a permutation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from batchrank.calls import Answer, Form, Prompt
from batchrank.prompts.render import QueryTexts
from batchrank.prompts.template import Kind, Template
from batchrank.values import Permutation, Window


@dataclass(frozen=True, slots=True)
class Means:
    """What windows are asked with: a template, and what the server was found to offer.

    `thinking_tokens` is the room for reasoning before an answer, `top_logprobs` how many
    alternatives of a token the server returns.
    """

    template: Template
    form: Form
    thinking_tokens: int = 0
    top_logprobs: int = 0


class Reader(Protocol):
    """One reading. Reading needs neither prompt nor template, so that a stored answer can be read.

    Pure: the same arguments, the same result. `kind` is the kind of template it asks with, None
    for none; `most` how many documents a window may hold, None for any number; `scores` whether
    documents are scored one by one, and so `Permutation.scores` given.
    """

    @property
    def kind(self) -> Kind | None: ...

    @property
    def most(self) -> int | None: ...

    @property
    def scores(self) -> bool: ...

    def wanted(self, window: Window) -> int:
        """How many documents of `window` an answer must name."""

    def prompt(self, texts: QueryTexts, window: Window, means: Means) -> Prompt:
        """The prompt that asks `window`; PromptError where the template fails on it."""

    def read(self, window: Window, answer: Answer) -> Permutation:
        """What `answer` says of `window`; whatever it holds, never an exception."""

    def second(
        self, texts: QueryTexts, window: Window, means: Means, first: Prompt, answer: Answer
    ) -> Prompt | None:
        """The one other prompt worth asking after `answer` to `first`, if any.

        It was unusable, or was cut before it had named half of what was wanted.
        """


@dataclass(frozen=True, slots=True)
class Way:
    """How the windows of one stage are asked and read."""

    reader: Reader
    means: Means
