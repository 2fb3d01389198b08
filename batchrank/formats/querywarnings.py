"""Counts what is odd about queries that can be used all the same, and names the first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from batchrank.formats.wording import counted, shown

_NAMED = 3


class QueryWarnings:
    """How many queries each sentence is true of, and the qids of the first few."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, list[str]]] = {}

    def add(self, sentences: Iterable[str], qid: str) -> None:
        """Note what is odd about a query."""
        self.add_counted(sentences, 1, [qid])

    def add_counted(self, sentences: Iterable[str], count: int, first: Sequence[str]) -> None:
        """Note what is odd about `count` queries, of which the `first` few are known by qid."""
        for sentence in sentences:
            so_far, named = self._found.get(sentence, (0, []))
            named += first[: _NAMED - len(named)]
            self._found[sentence] = so_far + count, named

    def lines(self) -> list[str]:
        """A line for each sentence: `2 queries ('q1', 'q7'): scores rise …`."""
        return [
            f"{named_queries(count, named)}: {sentence}"
            for sentence, (count, named) in self._found.items()
        ]


def named_queries(count: int, first: Iterable[str]) -> str:
    """A number of queries and the qids of the `first` few: `4 queries ('a', 'b', 'c', …)`."""
    named = [shown(qid) for qid in first]
    more = ", …" if count > len(named) else ""
    return f"{counted(count, 'query', 'queries')} ({', '.join(named)}{more})"
