"""Answers: committed when the call returns, found again exactly, whatever a model wrote."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.calls import Answer, Usage
from batchrank.store.records import StoredAnswer
from batchrank.store.store import Store

ANSWERS = st.builds(
    Answer,
    text=st.text(st.characters(), max_size=20),
    reasoning=st.text(st.characters(), max_size=20),
    finish=st.sampled_from(("stop", "length")),
    usage=st.builds(Usage, st.integers(0, 2**31), st.integers(0, 2**31)),
    seconds=st.integers(0, 10**6).map(lambda thousandths: thousandths / 1000),
)


def key(number: int) -> bytes:
    """A key of the right size."""
    return number.to_bytes(20, "big")


async def test_an_answer_is_durable_when_its_call_returns(store: Store, path: Path) -> None:
    number = await store.add_answer(key(1), 1, Answer("3,1,2", usage=Usage(70, 6)))

    with sqlite3.connect(path) as other:
        rows = other.execute("SELECT id, text, prompt_tokens FROM answers").fetchall()
    other.close()
    assert rows == [(number, b"3,1,2", 70)]


async def test_each_of_many_answers_at_once_is_durable_when_its_own_call_returns(
    store: Store, path: Path
) -> None:
    other = sqlite3.connect(path)

    async def add(number: int) -> int:
        stored = await store.add_answer(key(number), 1, Answer(str(number)))
        found = other.execute("SELECT count(*) FROM answers WHERE key = ?", (key(number),))
        assert found.fetchone() == (1,)
        return stored

    numbers = await asyncio.gather(*(add(number) for number in range(200)))
    other.close()

    assert len(set(numbers)) == 200


async def test_many_writes_share_few_transactions(store: Store, path: Path) -> None:
    before = _commits(path)

    await asyncio.gather(*(store.add_answer(key(n), 1, Answer("")) for n in range(500)))

    assert _commits(path) - before < 10


async def test_look_ups_find_what_is_there_and_nothing_else(store: Store) -> None:
    await asyncio.gather(*(store.add_answer(key(n), 1, Answer(str(n))) for n in range(0, 1500, 2)))

    found = await asyncio.gather(*(store.find_answer(key(n)) for n in (*range(1500), 4, 4)))

    texts = [stored.answer.text if stored else None for stored in found]
    assert texts == [str(n) if n % 2 == 0 else None for n in range(1500)] + ["4", "4"]


async def test_a_later_answer_to_the_same_request_replaces_the_first(store: Store) -> None:
    first = await store.add_answer(key(1), 1, Answer("old"))
    second = await store.add_answer(key(1), 2, Answer("new"))

    assert await store.find_answer(key(1)) == StoredAnswer(second, Answer("new"))
    assert await store.answers([first, second, 99]) == {second: Answer("new")}


async def test_numbers_go_on_after_reopening(store: Store, path: Path) -> None:
    first = await store.add_answer(key(1), 1, Answer("a"))
    again = await Store.open(path)
    second = await again.add_answer(key(2), 1, Answer("b"))
    await again.close()

    assert second == first + 1


@settings(deadline=None, max_examples=50)
@given(st.lists(ANSWERS, min_size=1, max_size=20))
def test_answers_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, answers: list[Answer]
) -> None:
    async def keep_and_find() -> list[StoredAnswer | None]:
        path = tmp_path_factory.mktemp("store") / "s.sqlite"
        store = await Store.open(path, create=True)
        await asyncio.gather(
            *(store.add_answer(key(n), 1, answer) for n, answer in enumerate(answers))
        )
        await store.close()
        store = await Store.open(path)
        found = [await store.find_answer(key(n)) for n in range(len(answers))]
        await store.close()
        return found

    found = asyncio.run(keep_and_find())

    assert [stored.answer for stored in found if stored] == answers


async def test_surrogates_and_nul_survive(store: Store) -> None:
    answer = Answer("\ud800 \x00 \udfff", reasoning="\x00\udc80")
    await store.add_answer(key(1), 1, answer)

    found = await store.find_answer(key(1))

    assert found is not None
    assert found.answer == answer


async def test_a_cancelled_caller_takes_no_neighbour_with_it(store: Store) -> None:
    gone = asyncio.create_task(store.add_answer(key(1), 1, Answer("gone")))
    stays = asyncio.create_task(store.add_answer(key(2), 1, Answer("stays")))
    await asyncio.sleep(0)
    gone.cancel()

    await stays
    with pytest.raises(asyncio.CancelledError):
        await gone
    found = await store.find_answer(key(1))
    assert found is not None, "what was queued is committed, wanted or not"


async def test_closing_commits_what_is_queued(path: Path) -> None:
    store = await Store.open(path, create=True)
    adding = asyncio.create_task(store.add_answer(key(1), 1, Answer("late")))
    await asyncio.sleep(0)

    await store.close()

    await adding
    again = await Store.open(path)
    assert await again.find_answer(key(1)) is not None
    await again.close()


def _commits(path: Path) -> int:
    """Transactions committed so far, by the change counters of their frames in the log."""
    log = path.with_name(f"{path.name}-wal").read_bytes()
    page_size = int.from_bytes(log[8:12], "big")
    frames = range(32, len(log), 24 + page_size)
    # A frame that ends a transaction holds the size of the database; all others hold 0.
    return sum(1 for frame in frames if log[frame + 4 : frame + 8] != bytes(4))
