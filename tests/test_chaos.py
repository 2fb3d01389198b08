"""A job on three servers that fail in every way: the short form of scripts/chaos_test.py."""

from __future__ import annotations

from pathlib import Path

from scripts.chaos_test import chaos_test


def test_nothing_is_lost_whatever_servers_do(tmp_path: Path) -> None:
    figures = chaos_test(tmp_path, queries=60, seed=1)
    assert figures.failures == []
    assert figures.rows == 60
    assert figures.faults > 0
