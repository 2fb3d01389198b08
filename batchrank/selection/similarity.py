"""How alike the documents of a query are: by their embeddings where all have one, or by terms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from operator import mul

from batchrank.selection.words import words
from batchrank.values import Document

Similarity = Callable[[int, Iterable[int]], Mapping[int, float]]
"""The cosine of one document, by its place, to each of others."""


def similarity_of(documents: Sequence[Document]) -> Similarity:
    """By embeddings where each document has one of the same length, else by term counts."""
    lengths = {len(document.embedding) for document in documents}
    if len(lengths) == 1 and 0 not in lengths:
        return by_embeddings([document.embedding for document in documents])
    return by_terms([document.text for document in documents])


def by_embeddings(embeddings: Sequence[Sequence[float]]) -> Similarity:
    """The cosine of vectors of one length; that of nothing but zeros is like no other."""
    units = [_scaled(embedding) for embedding in embeddings]

    def similarity(place: int, others: Iterable[int]) -> dict[int, float]:
        mine = units[place]
        return {other: sum(map(mul, mine, units[other])) for other in others}

    return similarity


def by_terms(texts: Sequence[str]) -> Similarity:
    """The cosine of term counts; a text without a word is like no other."""
    vectors = [_unit(Counter(words(text))) for text in texts]
    holders: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for place, vector in enumerate(vectors):
        for term, value in vector.items():
            holders[term][place] = value

    def similarity(place: int, others: Iterable[int]) -> dict[int, float]:
        found = dict.fromkeys(range(len(vectors)), 0.0)
        for term, value in vectors[place].items():
            for other, its in holders[term].items():
                found[other] += value * its
        return {other: found[other] for other in others}

    return similarity


def _unit(counts: Mapping[str, int]) -> dict[str, float]:
    length = sqrt(sum(count * count for count in counts.values()))
    return {term: count / length for term, count in counts.items()}


def _scaled(vector: Sequence[float]) -> list[float]:
    # Scaled by the largest first, or the square of a huge or tiny number would be no number.
    largest = max(map(abs, vector))
    if largest == 0:
        return list(vector)
    scaled = [value / largest for value in vector]
    length = sqrt(sum(map(mul, scaled, scaled)))
    return [value / length for value in scaled]
