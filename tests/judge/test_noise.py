"""Noise and position bias: as strong as set, and the same for the same request."""

from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from scripts.judge import JudgeConfig, JudgeServer
from scripts.judge.recognise import Recognised
from scripts.judge.scoring import bias, scores

from .asking import FRUIT, NAMES, content, contents, named, texts, window

REVERSED = NAMES[::-1]


async def test_noise_by_document_stays_with_it_in_every_window() -> None:
    config = JudgeConfig(noise=50.0, seed=3)
    first, again, turned = await contents(
        config, [window(texts()), window(texts()), window(texts(REVERSED))]
    )
    assert first == again
    assert named(first) == named(turned, REVERSED)


async def test_noise_by_request_changes_with_the_request_only() -> None:
    config = JudgeConfig(noise=50.0, noise_by="request")
    prompts = [window(texts(), task=f"Rank them, {number}.") for number in range(10)]
    first = await contents(config, prompts)
    assert first == await contents(config, prompts)
    assert len(set(first)) > 5


async def test_noise_by_attempt_changes_whenever_a_request_comes() -> None:
    config = JudgeConfig(noise=50.0, noise_by="attempt")
    first = await contents(config, [window(texts())] * 10)
    assert len(set(first)) > 5
    assert first == await contents(config, [window(texts())] * 10)


async def test_another_seed_is_another_judge() -> None:
    orders = [
        (await contents(JudgeConfig(noise=50.0, seed=seed), [window(texts())]))[0]
        for seed in range(10)
    ]
    assert len(set(orders)) > 5


def test_noise_has_the_set_deviation() -> None:
    seen = Recognised("q", tuple(map(str, range(4000))), (2.0,) * 4000)
    for by in ("document", "request"):
        drawn = scores(JudgeConfig(noise=0.5, noise_by=by), seen, "digest")
        assert abs(statistics.mean(drawn) - 2.0) < 0.03
        assert abs(statistics.pstdev(drawn) - 0.5) < 0.03


async def test_first_bias_wins_over_gains_when_strong() -> None:
    config = JudgeConfig(bias="first", bias_strength=100.0)
    assert await contents(config, [window(texts())]) == ["[1] > [2] > [3] > [4] > [5]"]


async def test_u_shaped_bias_favours_both_ends() -> None:
    config = JudgeConfig(bias="u-shape", bias_strength=100.0)
    assert await contents(config, [window(texts())]) == ["[5] > [1] > [4] > [2] > [3]"]


async def test_a_weak_bias_only_decides_ties() -> None:
    shown = ("lime", "apple", "pear")
    async with JudgeServer(JudgeConfig(bias="first", bias_strength=0.01), FRUIT) as judge:
        assert named(await content(judge, window(texts(shown))), shown) == ("apple", "pear", "lime")


@given(st.integers(0, 200))
def test_bias_lies_between_0_and_1(count: int) -> None:
    assert bias("none", count) == (0.0,) * count
    first, ends = bias("first", count), bias("u-shape", count)
    assert list(first) == sorted(first, reverse=True)
    assert all(0.0 <= favour <= 1.0 for favour in first + ends)
    assert all(abs(a - b) < 1e-9 for a, b in zip(ends, ends[::-1], strict=True)) or count < 2
