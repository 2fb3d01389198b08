"""Slots, queue, rates and the prefix cache."""

from __future__ import annotations

import asyncio
import statistics

from scripts.judge import JudgeConfig, JudgeServer
from scripts.judge.latency import BLOCK, PrefixCache, Slots
from tests.waiting import soon

from .asking import FRUIT, chat, get, post, texts, window


async def test_requests_beyond_the_slots_wait_in_line() -> None:
    async with JudgeServer(JudgeConfig(slots=2, call_seconds=0.02), FRUIT) as judge:
        bodies = [chat(window(texts(), task=f"Rank them, {number}.")) for number in range(6)]
        statuses = [status for status, _ in await asyncio.gather(*(post(judge, b) for b in bodies))]
        _, _, stats = await get(judge, "/judge/stats")
    assert statuses == [200] * 6
    assert stats["slots"] == 2
    assert stats["max_in_flight"] > 2
    assert stats["busy_seconds"] > 0
    assert stats["served"] == {"POST /v1/chat/completions 200": 6}


async def test_a_client_that_leaves_the_line_holds_nobody_up() -> None:
    slots = Slots(JudgeConfig(slots=1))
    tasks = [asyncio.ensure_future(slots.hold(lambda: 3600.0)) for _ in range(4)]
    last = asyncio.ensure_future(slots.hold(lambda: 0.0))
    await asyncio.sleep(0)
    assert (slots.busy, slots.waiting, slots.max_in_flight) == (1, 4, 5)
    tasks[2].cancel()  # waits
    tasks[0].cancel()  # is served
    await asyncio.sleep(0)
    tasks[1].cancel()  # has just been given the slot
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (slots.busy, slots.waiting) == (1, 1)
    tasks[3].cancel()
    await last
    assert (slots.busy, slots.waiting) == (0, 0)
    assert slots.busy_seconds < 3600.0


async def test_slots_are_as_busy_as_was_set_however_slow_the_process() -> None:
    slots = Slots(JudgeConfig(slots=2))
    await asyncio.gather(*(slots.hold(lambda: 0.002) for _ in range(50)))
    # Never more than planned; a timer may ring a little early.
    assert 0.05 < slots.busy_seconds <= 0.1 + 1e-9


async def test_requests_beyond_the_queue_are_sent_away() -> None:
    config = JudgeConfig(slots=1, queue=1, call_seconds=3600.0, retry_after=7)
    async with JudgeServer(config, FRUIT) as judge:
        body = chat(window(texts()))
        tasks = [asyncio.ensure_future(post(judge, body)) for _ in range(2)]
        await soon(lambda: judge.stats()["in_flight"] == 2)
        status, answer = await post(judge, body)
        assert (status, "busy" in answer["error"]["message"]) == (503, True)
        for task in tasks:
            task.cancel()


def test_a_call_takes_its_base_and_its_tokens() -> None:
    config = JudgeConfig(call_seconds=0.5, prompt_rate=1000.0, generated_rate=10.0)
    assert Slots(config).seconds(2000, 5, "digest") == 0.5 + 2.0 + 0.5


def test_the_spread_of_a_call_keeps_its_mean() -> None:
    slots = Slots(JudgeConfig(call_seconds=2.0, sigma=0.5))
    times = [slots.seconds(0, 0, str(number)) for number in range(5000)]
    assert abs(statistics.mean(times) - 2.0) < 0.1
    assert abs(statistics.median(times) - 2.0 / 1.1331) < 0.1  # exp(sigma² / 2)
    assert slots.seconds(0, 0, "1") == times[1]


def test_the_prefix_cache_counts_whole_blocks_and_forgets_the_oldest() -> None:
    block = 4 * BLOCK
    cache = PrefixCache(4 * BLOCK)
    assert cache.cached("a" * block + "b" * block + "c") == 0
    assert cache.cached("a" * block + "b" * block) == 2 * BLOCK
    assert cache.cached("a" * block + "x" * block) == BLOCK
    assert cache.cached("b" * block) == 0  # a prefix only counts from the start
    assert cache.cached("d" * block * 4) == 0
    assert cache.cached("a" * block) == 0
    assert PrefixCache(0).cached("a" * block) == 0


async def test_cached_tokens_are_disclosed_and_counted() -> None:
    async with JudgeServer(JudgeConfig(prefix_cache=10_000), FRUIT) as judge:
        prompts = [window(texts(), task=task) for task in ("Rank them.", "Rank all.")]
        usages = [(await post(judge, chat(prompt)))[1]["usage"] for prompt in prompts]
        tokens = judge.stats()["tokens"]
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    assert cached == [0, BLOCK]
    assert tokens["cached"] == BLOCK
    assert tokens["prompt"] == sum(usage["prompt_tokens"] for usage in usages)
    assert usages[0]["prompt_tokens"] == -(-len(prompts[0].encode()) // 4)
    assert usages[0]["completion_tokens"] == len("[1]>" * 5)  # the last ">" is the end token
