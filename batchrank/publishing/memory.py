"""Whether a publication fits into the memory of a Redis, and what it would do there if not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_OBJECT = 16
_DICT_ENTRY = 32
_BUCKETS = 16
"""Bytes of a hash table for each of its entries: it has up to twice as many buckets of 8."""
_EMBEDDED = 44
"""The longest value that stands in the allocation of its object."""
_MARGIN = 1.1
_BUFFERS = 4_000_000
"""What the commands on their way take."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a server says of its memory, in bytes; `most` is 0 where no limit is set."""

    used: int
    most: int
    policy: str
    resident: int
    machine: int

    @classmethod
    def of(cls, info: Mapping[str, object]) -> Memory:
        """From the section `memory` of INFO; what another server leaves out counts as 0."""

        def number(name: str) -> int:
            return int(str(info.get(name, 0)))

        return cls(
            used=number("used_memory") - number("mem_not_counted_for_evict"),
            most=number("maxmemory"),
            policy=str(info.get("maxmemory_policy", "noeviction")),
            resident=number("used_memory_rss"),
            machine=number("total_system_memory"),
        )


def allocated(size: int) -> int:
    """What jemalloc takes for so many bytes: steps of 16, from 128 on four to each doubling."""
    step = 16
    while size > step * 8:
        step *= 2
    return -(-size // step) * step


def entry_bytes(key: int, value: float, *, has_ttl: bool) -> int:
    """Memory of an entry whose key and value have so many bytes."""
    length = round(value)
    tables = (_DICT_ENTRY + _BUCKETS) * (2 if has_ttl else 1)
    if length <= _EMBEDDED:
        stored = allocated(_OBJECT + 4 + length)
    else:
        stored = _OBJECT + allocated(_header(length) + length + 1)
    return tables + allocated(_header(key) + key + 1) + stored


def refusal(
    needed: int, memory: Memory, *, freed: int = 0, remedies: Sequence[str] = ("raise maxmemory",)
) -> str | None:
    """Why so many bytes must not be written, None where they may.

    `freed` are given back before; `remedies` are what can be done where a limit is set.
    """
    wanted = round(needed * _MARGIN) + _BUFFERS
    asked = (
        f"about {size(wanted)} are needed ({size(needed)} for entries, a tenth of that to be sure, "
        f"and {size(_BUFFERS)} for what is on its way)"
    )
    if not memory.most:
        free = memory.machine - memory.resident + freed
        if not memory.machine or wanted <= free:
            return None
        return (
            f"{asked} and its machine has {size(max(0, free))} beside it: use another, or publish "
            "less"
        )
    free = memory.most - memory.used + freed
    if wanted <= free:
        return None
    if memory.policy == "noeviction":
        then = "its writes would fail (maxmemory-policy noeviction)"
    elif memory.policy.startswith("volatile"):
        then = f"it would evict live keys that have a TTL (maxmemory-policy {memory.policy})"
    else:
        then = f"it would evict live keys (maxmemory-policy {memory.policy})"
    return (
        f"{asked}, {size(max(0, free))} of maxmemory {size(memory.most)} are free, so that {then}: "
        + ", or ".join(remedies)
    )


def size(count: int) -> str:
    """Bytes in decimal megabytes, in gigabytes from 10 of those on."""
    return f"{count / 1e9:,.1f} GB" if count >= 10e9 else f"{count / 1e6:,.1f} MB"


def _header(length: int) -> int:
    """The header of a string in Redis."""
    return 1 if length < 32 else 3 if length < 256 else 5 if length < 65_536 else 9
