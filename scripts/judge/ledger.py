"""Counts what a judge was asked and appends each model call to a file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import orjson

from .answers import Purpose


class Call(NamedTuple):
    """One model call. `status` is 0 for a connection the judge reset, 499 where the client left."""

    time: float
    """When it came, in seconds since 1970."""
    seconds: float
    """How long it took from then to its answer, with its time in the queue."""
    body: str
    """Hash of the request's bytes."""
    status: int
    purpose: Purpose | None
    """None where the request was never judged."""


class Ledger:
    """Memory is one `Call` a model call; the file gets one JSON line each, at once."""

    def __init__(self, path: Path | None) -> None:
        self.calls: list[Call] = []
        self.served: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter(prompt=0, cached=0, completion=0)
        self.unknown = 0
        self._path = path
        self._file: TextIO | None = None

    def open(self) -> None:
        """Open the file for appending. Raises OSError."""
        if self._path is not None:
            self._file = self._path.open("a", buffering=1, encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def record(self, call: Call) -> None:
        """Keep a model call that has ended."""
        self.calls.append(call)
        if self._file is not None:
            self._file.write(orjson.dumps(call._asdict()).decode() + "\n")

    def stats(self) -> dict[str, Any]:
        """Counts of model calls, responses by route and status, tokens and unknown documents."""
        return {
            "model_calls": len(self.calls),
            "purposes": dict(Counter(call.purpose or "unjudged" for call in self.calls)),
            "distinct_bodies": len({call.body for call in self.calls}),
            "served": dict(self.served),
            "tokens": dict(self.tokens),
            "unknown": self.unknown,
        }
