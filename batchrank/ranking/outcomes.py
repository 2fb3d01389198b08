"""What came of asking: of one window, and of all that a process asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from batchrank.calls import Usage
from batchrank.store.records import StoredAnswer
from batchrank.values import Permutation, Status, Window

STORED = "store"
NOBODY = "none"


@dataclass(frozen=True, slots=True)
class Asked:
    """One window's outcome; `used` is the answer it was read from, `consulted` all it took.

    `endpoint` is the URL of the server that gave that answer just now, or failed to give one;
    `is_second`: it answers a second request, as the first brought none that was of use.
    """

    window: Window
    permutation: Permutation
    wanted: int
    used: StoredAnswer | None
    consulted: tuple[StoredAnswer, ...]
    fault: str | None = None
    fault_kind: str | None = None
    endpoint: str = field(default="", compare=False)
    is_second: bool = False


@dataclass(slots=True)
class Spent:
    """What this process did: calls it paid for and calls it could save.

    `windows` are counted by how they ended and the URL of the server whose answer they were read
    from, or that failed last: STORED where the store had it, NOBODY where none was asked.
    """

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    saved: int = 0
    retries: int = 0
    seconds: float = 0.0
    windows: Counter[tuple[Status, str]] = field(default_factory=Counter)

    @property
    def servers(self) -> dict[str, dict[str, int]]:
        """By URL a server's `windows`, and those of them that were `bad`: unusable, unanswered."""
        found: dict[str, dict[str, int]] = {}
        for (status, source), count in sorted(self.windows.items()):
            if source not in (STORED, NOBODY):
                counts = found.setdefault(source, {"windows": 0, "bad": 0})
                counts["windows"] += count
                counts["bad"] += count * (status in (Status.FALLBACK, Status.ERROR))
        return found
