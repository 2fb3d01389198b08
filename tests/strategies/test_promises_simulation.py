"""The simulation behind the table of strategies: its metric, its judge and what it counts."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from batchrank.strategies.orders import forward
from batchrank.strategies.segmented import segmented
from batchrank.strategies.single import single
from scripts.strategies_sim.judge import Judge, Setting
from scripts.strategies_sim.topics import Topic, load_topics

NOISELESS = Setting("noiseless", spread=0, flutter=0)
NOISY = Setting("noisy", spread=1, flutter=1)


@pytest.fixture(scope="module")
def topics(shared_data: Path) -> list[Topic]:
    """The queries that the table is about."""
    return load_topics(shared_data / "dl19")


def test_the_first_stage_and_the_best_order_score_as_published(topics: list[Topic]) -> None:
    best = [Judge(NOISELESS, t, 0).play(single(None, 10)(t.first_stage), full=True) for t in topics]

    assert fmean(t.ndcg(t.first_stage) for t in topics) == pytest.approx(0.5058310024399072)
    assert fmean(
        topic.ndcg(ranking) for topic, (ranking, _) in zip(topics, best, strict=True)
    ) == pytest.approx(0.8922, abs=5e-5)


def test_the_same_seed_gives_the_same_ranking_and_another_does_not(topics: list[Topic]) -> None:
    topic = topics[0]
    strategy = segmented(20, None, 10, [forward])

    one, again, other = (
        Judge(NOISY, topic, seed).play(strategy(topic.first_stage), full=False)[0]
        for seed in (1, 1, 2)
    )

    assert one == again != other


def test_a_window_asked_twice_is_paid_for_once(topics: list[Topic]) -> None:
    topic = topics[0]
    strategy = segmented(20, None, 10, [forward, forward])

    _, cost = Judge(NOISY, topic, 0).play(strategy(topic.first_stage), full=False)

    assert (cost.depth, cost.calls, cost.documents) == (2, 6, 120)
    # Four of twenty in two digits and a separator each, five times, and ten of the merge.
    assert cost.generated_tokens == 5 * 4 * 3 + 10 * 3
