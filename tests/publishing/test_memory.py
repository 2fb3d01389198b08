"""What a Redis has room for is judged before anything is written."""

from __future__ import annotations

import pytest

from batchrank.publishing.memory import Memory, allocated, entry_bytes, refusal, size

MB = 1_000_000


@pytest.mark.parametrize(
    ("asked", "taken"),
    [(1, 16), (16, 16), (17, 32), (128, 128), (129, 160), (256, 256), (257, 320), (1500, 1536)],
)
def test_allocations(asked: int, taken: int) -> None:
    assert allocated(asked) == taken


def test_entries_with_an_end_take_more() -> None:
    without = entry_bytes(80, 1500, has_ttl=False)
    assert 1500 + 80 < without < entry_bytes(80, 1500, has_ttl=True) < 1500 + 80 + 250
    assert entry_bytes(80, 10, has_ttl=False) < 80 + 10 + 120


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("noeviction", "its writes would fail"),
        ("allkeys-lru", "it would evict live keys (maxmemory-policy allkeys-lru)"),
        ("allkeys-random", "it would evict live keys"),
        ("volatile-ttl", "it would evict live keys that have a TTL"),
    ],
)
def test_what_would_happen_is_said(policy: str, said: str) -> None:
    memory = Memory(used=50 * MB, most=100 * MB, policy=policy, resident=60 * MB, machine=10**10)
    found = refusal(60 * MB, memory)
    assert found is not None
    assert said in found
    assert (
        "about 70.0 MB are needed (60.0 MB for entries, a tenth of that to be sure, and " in found
    )
    assert "4.0 MB for what is on its way), 50.0 MB of maxmemory 100.0 MB are free" in found
    assert found.endswith(": raise maxmemory")
    assert refusal(60 * MB, memory, freed=20 * MB) is None
    assert refusal(40 * MB, memory) is None


def test_without_a_limit_the_machine_counts() -> None:
    memory = Memory(used=MB, most=0, policy="noeviction", resident=2 * MB, machine=100 * MB)
    assert refusal(50 * MB, memory) is None
    assert "its machine has 98.0 MB beside it" in (refusal(99 * MB, memory) or "")


def test_what_a_server_does_not_tell_refuses_nothing() -> None:
    assert refusal(10**12, Memory.of({"used_memory": 5})) is None


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0.0 MB"), (1_234_567, "1.2 MB"), (12e9, "12.0 GB")]
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text
