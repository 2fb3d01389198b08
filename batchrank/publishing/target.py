"""What a publication asks of the place it goes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from batchrank.entries import Scheme
from batchrank.errors import UsageError

TOOK_OVER = (
    "another publication took over, of another store or from another machine; run the same command "
    "again where yours is to be the last"
)
"""Why a publication ends where two meet."""


class Entry(NamedTuple):
    """One cache entry; `expires` is in seconds since the epoch, None for never."""

    key: str
    value: bytes
    expires: float | None


@dataclass(frozen=True, slots=True)
class Header:
    """What a generation is made from: equal `identity`, equal entries.

    `scheme` is how its keys are made, None where the target lost that.
    """

    identity: str
    scheme: Scheme | None
    source: str


@dataclass(frozen=True, slots=True)
class Generation:
    """One that readers see, or that is kept.

    `entries` are those it had when it was made, None where that is not known.
    """

    number: int
    header: Header
    entries: int | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """A generation in the making.

    `began` is by the target's clock. All lines up to `position` are written, -1 before the first,
    as `written` entries.
    """

    number: int
    began: float
    position: int = -1
    written: int = 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """The live keys of the current generation, and those of them that the new one has too."""

    keys: int
    covered: int

    @property
    def share(self) -> float:
        """1 where there is nothing to cover."""
        return self.covered / self.keys if self.keys else 1.0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.keys + other.keys, self.covered + other.covered)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is about to be written: `entries` at most, with values of `value_bytes` on average.

    `keys` are those of a sample, `has_ttl` says whether they end. `keep` generations stay.
    """

    entries: int
    value_bytes: float
    keys: Sequence[str]
    has_ttl: bool
    replace: bool
    keep: int


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that a plan takes in the target, and why there is no room for them, if so."""

    needed: int
    refusal: str | None = None


class Target(Protocol):
    """A place for generations; `begin` comes first, then `write`, `carry`, `switch`, `prune`.

    All methods raise UsageError for what was asked wrongly, TargetError or DiskError where the
    place can't be used, and StoppedError where it failed in the middle and can go on.
    """

    name: str
    """For messages; holds no password."""

    async def current(self) -> Generation | None:
        """What readers see now."""

    async def ready(self) -> Generation | None:
        """What readers see now, where the place will take a publication as things stand.

        Raises UsageError for what time won't mend.
        """

    async def room(self, plan: Plan) -> Room:
        """Whether there is room for what a plan would write."""

    async def begin(self, header: Header) -> Begun:
        """A new generation, or the unfinished one with the same identity; others are dropped."""

    async def write(self, entries: Sequence[Entry], position: int) -> int:
        """Add entries, of which the first of a key stays; how many are written in total."""

    async def carry(self, after: str, *, copy: bool) -> tuple[str, Coverage]:
        """Take the next live keys of the current generation, from the beginning for an empty
        `after`; with `copy`, take over those that are missing.

        Returns where to go on, empty at the end, and what was found.
        """

    async def switch(self) -> int:
        """See that the new generation is whole and make it current; its number of entries."""

    async def discard(self) -> None:
        """Drop the new generation."""

    async def prune(self, keep: int) -> None:
        """Drop all but the current generation and the `keep` - 1 before it."""

    async def previous(self) -> Generation:
        """The generation before the current one; UsageError where there is none."""

    async def rollback(self) -> Generation:
        """Make the generation before the current one current; raises as `previous`."""

    async def close(self) -> None:
        """Let go of the place; what is unfinished is kept where it can go on."""


def one_before(name: str, before: Generation | None) -> Generation:
    """The generation `before` the current one of the target called `name`, where it is whole."""
    if before is None or before.header.scheme is None:
        raise UsageError(f"{name} keeps no generation before the current one")
    return before
