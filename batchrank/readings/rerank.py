"""Scores documents by a reranking model, such as a cross-encoder, through its server's own API."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from batchrank.answers import permutation
from batchrank.answers.reading import Reading
from batchrank.calls import Answer, Prompt, RerankPrompt
from batchrank.prompts.render import QueryTexts
from batchrank.readings.base import Means
from batchrank.readings.scores import unusable
from batchrank.values import Permutation, Status, Window


@dataclass(frozen=True, slots=True)
class Rerank:
    """`most` is what Text Embeddings Inference takes in a request; others take more."""

    kind: ClassVar[None] = None
    most: ClassVar[int] = 32
    scores: ClassVar[bool] = True

    def wanted(self, window: Window) -> int:
        """See `Reader.wanted`."""
        return len(window.shown)

    def prompt(self, texts: QueryTexts, window: Window, _means: Means) -> RerankPrompt:
        """See `Reader.prompt`."""
        return RerankPrompt(texts.query, tuple(texts.shown(window)))

    def read(self, window: Window, answer: Answer) -> Permutation:
        """See `Reader.read`. The first of two scores for one document counts."""
        scores: dict[int, float] = {}
        for place, score in answer.scored:
            if int(place) < len(window.shown):
                scores.setdefault(int(place), score)
        if not scores:
            return unusable(window, "no-score")
        named = tuple(sorted(scores, key=lambda place: -scores[place]))
        missing = len(named) < len(window.shown)
        reading = Reading(
            tuple(place + 1 for place in named),
            Status.REPAIRED if missing else Status.OK,
            ("missing",) if missing else (),
        )
        return replace(permutation(window, reading), scores=tuple(scores[place] for place in named))

    def second(
        self, _texts: QueryTexts, _window: Window, _means: Means, _first: Prompt, _answer: Answer
    ) -> None:
        """None: there is no other way to ask."""
        return
