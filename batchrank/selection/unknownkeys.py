"""Finds out that a filter asks for a metadata key that no candidate has: misspelt, most likely."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from batchrank.hints import meant
from batchrank.values import Document

_REMEMBERED = 200
"""Keys that are there, for a guess at the one that was meant."""


class UnknownKeys:
    """Looks at the candidates of each query for the keys that a filter asks for."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._unseen = dict.fromkeys(wanted)
        self._seen: dict[str, None] = {}
        self._looked = False

    def look(self, candidates: Sequence[Document]) -> None:
        """Cross off what these have."""
        if not self._unseen:
            return
        self._looked = True
        for document in candidates:
            for key in document.metadata:
                self._unseen.pop(key, None)
                if len(self._seen) < _REMEMBERED:
                    self._seen[key] = None

    def warnings(self) -> list[str]:
        """A sentence for each key that none had; nothing where no query was looked at."""
        if not self._looked:
            return []
        return [
            f"filter: no candidate that was read has the metadata key {key!r}"
            f"{meant(key, self._seen)}"
            for key in self._unseen
        ]
