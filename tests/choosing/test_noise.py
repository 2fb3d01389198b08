"""`compare --noise` shows how much the model differs from itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.choosing.conftest import QUERIES, asked
from tests.cli.running import Row, judge, serving, windows


@pytest.fixture
def runs(rows: list[Row], source: Path) -> list[str]:
    """Two runs of one store, by windows of 12 and 8."""
    with serving(judge(rows)) as server:
        for size in (12, 8):
            asked("run", source, "--base-url", server.url, "--window-size", size)
    return ["batchrank.sqlite#1", "batchrank.sqlite#2"]


def test_a_deterministic_model_has_no_noise(
    rows: list[Row], source: Path, runs: list[str], judged: Path
) -> None:
    with serving(judge(rows)) as server:
        flags = ("--noise", source, "--base-url", server.url, "--qrels", judged, "--json")
        found = asked("compare", *runs, *flags).json["noise"]
        paid = windows(server)
    # All of it is asked twice, whatever is known.
    assert len(paid) == 2 * len(set(paid)) == found["calls"]
    assert (found["queries"], found["overlap"], found["tau"]) == (QUERIES, 1, 1)
    assert all(one["change"] == one["size"] == 0 for one in found["measures"])


def test_noise_stands_beside_the_difference(
    rows: list[Row], source: Path, runs: list[str], judged: Path
) -> None:
    noisy = judge(rows, noise=0.5, noise_by="attempt")
    with serving(noisy) as server:
        flags = ("--noise", source, "--sample", 10, "--base-url", server.url)
        found = asked("compare", *runs, *flags, "--qrels", judged, "--json").json["noise"]
        text = asked("compare", *runs, *flags, "--qrels", judged).out.decode()
        alike = asked("compare", *runs, *flags).out.decode()
    assert found["queries"] == 10
    assert 0 < found["overlap"] < 1
    ndcg = found["measures"][0]
    assert ndcg["measure"] == "nDCG@10"
    assert 0 < abs(ndcg["change"]) <= ndcg["size"]
    assert "the model's own noise: 10 queries asked twice" in text
    rows_told = [line.split()[:4] for line in text.splitlines()]
    assert ["nDCG@10", "asked", "twice"] in [row[:3] for row in rows_told]
    assert ["nDCG@10", "A", "to", "B"] in rows_told
    assert "asked twice" in alike
    assert "nDCG@10" not in alike
    assert max(map(len, text.splitlines())) <= 100
