"""The asker: each request once, committed before it is used, tried again, asked otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiosqlite
import pytest

from batchrank.backends.base import Call
from batchrank.calls import Answer, ChatPrompt, Form, Prompt, ServerInfo, Usage
from batchrank.errors import (
    BadResponseError,
    ContextOverflowError,
    FatalServerError,
    RefusedError,
    ServerError,
    StoppedError,
    StoreError,
    UnavailableError,
)
from batchrank.prompts.loading import load_template
from batchrank.prompts.render import Cut, QueryTexts
from batchrank.prompts.template import Kind
from batchrank.prompts.tokens import TokenCounter
from batchrank.ranking.asker import Asker, Manner
from batchrank.ranking.outcomes import STORED, Asked
from batchrank.readings.base import Means, Reader, Way
from batchrank.readings.identifiers import Identifiers
from batchrank.serving.capacity import FixedCapacity
from batchrank.serving.endpoint import Endpoint
from batchrank.serving.pool import Pool
from batchrank.serving.probe import probe
from batchrank.store import batcher
from batchrank.store.store import Store
from batchrank.values import Document, Permutation, Query, Request, Status, Window
from tests.waiting import PATIENCE

TEMPLATE = load_template("direct-en", "direct")
Reply = str | Answer | ServerError
NOW = (0, 0)
INFO = ServerInfo("fake", "m", "id", tuple(Form))
PROBES = tuple(probe(form) for form in Form)


@dataclass
class FakeBackend:
    """A server that answers as `reply` says, and notes every prompt but probes that it is sent."""

    reply: Callable[[ChatPrompt], Reply]
    url: str = "http://127.0.0.1:0"
    in_background: bool = False
    reconnects: int = 0
    sent: list[ChatPrompt] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    _prompts: dict[bytes, ChatPrompt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gate.set()

    async def crowd(self, own: int) -> int | None:
        return own

    async def describe(self) -> ServerInfo:
        return INFO

    def encode(self, prompt: Prompt) -> Call:
        assert isinstance(prompt, ChatPrompt)
        body = repr(prompt).encode()
        self._prompts[body] = prompt
        return Call("/chat", body, lambda data: Answer(data.decode()))

    async def send(self, call: Call, seconds: float) -> Answer:
        prompt = self._prompts[call.body]
        if prompt not in PROBES:
            self.sent.append(prompt)
            self.arrived.set()
            await self.gate.wait()
        await asyncio.sleep(0)
        reply = self.reply(prompt)
        if isinstance(reply, ServerError):
            raise reply
        return Answer(reply, usage=Usage(10, 2)) if isinstance(reply, str) else reply

    async def close(self) -> None:
        return


class FastClock:
    """Time that goes on as soon as somebody waits for it, unless it stands still."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.stands_still = False

    def now(self) -> float:
        return self.seconds

    def wall(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        if self.stands_still:
            await asyncio.Event().wait()
        self.seconds += seconds
        await asyncio.sleep(0)


@dataclass(frozen=True)
class Noting:
    """Reads as `Identifiers`, and notes when."""

    events: list[str]
    inner: Identifiers = field(default_factory=lambda: Identifiers(full=False))
    kind: Kind | None = "direct"
    most: int | None = None
    scores: bool = False

    def wanted(self, window: Window) -> int:
        return self.inner.wanted(window)

    def prompt(self, texts: QueryTexts, window: Window, means: Means) -> ChatPrompt:
        return self.inner.prompt(texts, window, means)

    def read(self, window: Window, answer: Answer) -> Permutation:
        self.events.append("read")
        return self.inner.read(window, answer)

    def second(
        self, texts: QueryTexts, window: Window, means: Means, first: Prompt, answer: Answer
    ) -> ChatPrompt | None:
        return self.inner.second(texts, window, means, first, answer)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An open store."""
    opened = await Store.open(tmp_path / "s.sqlite", create=True)
    yield opened
    await opened.close()


def ignored() -> None:
    """That a window was sent."""


def texts(query: str = "q", more: str = "") -> QueryTexts:
    """A query with the documents a to d."""
    candidates = tuple(Document(docid, f"text of {docid} {more}") for docid in "abcd")
    return QueryTexts(Request(Query("1", query), candidates), 4, Cut(TokenCounter(), 50))


def window(shown: str = "abcd", wants: int = 2) -> Window:
    """A window in first-stage order, shown in another."""
    return Window(tuple(sorted(shown)), tuple(shown), wants)


def asker_of(
    backend: FakeBackend,
    store: Store,
    *,
    capacity: int = 4,
    form: Form = Form.GRAMMAR,
    re_ask: bool = True,
    run: int = 1,
    identity: str = "id",
    reader: Reader | None = None,
    clock: FastClock | None = None,
) -> Asker:
    """An asker of one stage and one server, which may be away for a minute."""
    clock = clock or FastClock()
    endpoint = Endpoint(
        backend,
        INFO,
        INFO,
        capacity_of=lambda _: FixedCapacity(capacity, capacity),
        clock=clock,
        proved=True,
    )
    pool = Pool([endpoint], probe(form), timeout=60, wait_for_server=60, say=print, clock=clock)
    ways = (Way(reader or Identifiers(full=False), Means(TEMPLATE, form)),)
    return Asker(pool, store, run, Manner(identity, ways, re_ask))


async def ask(asker: Asker, *windows: Window, query: str = "q") -> list[Asked]:
    """Ask windows of one query in one round."""
    return await asker.ask_round(windows or (window(),), texts(query), NOW, ignored)


async def settle(store: Store) -> None:
    """Let everything go on until it waits for the backend: the store answers in order."""
    for _ in range(10):
        await store.find_answer(b"of nothing")


class TestOnce:
    """What is paid for, and how often."""

    async def test_an_answer_orders_the_window_and_is_counted(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "3,1")
        asker = asker_of(backend, store)

        (asked,) = await ask(asker, window("dcba"))

        assert asked.permutation == Permutation(("b", "d", "a", "c"), 2, Status.OK)
        assert asked.used is not None
        assert asked.consulted == (asked.used,)
        assert (asker.spent.calls, asker.spent.usage, asker.spent.saved) == (1, Usage(10, 2), 0)

    async def test_answers_share_a_commit_while_more_is_to_be_sent_and_wait_for_none_else(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(batcher, "PATIENCE_SECONDS", 3600.0)
        commits = 0
        commit = aiosqlite.Connection.commit

        async def counted(connection: aiosqlite.Connection) -> None:
            nonlocal commits
            commits += 1
            await commit(connection)

        monkeypatch.setattr(aiosqlite.Connection, "commit", counted)
        asker = asker_of(FakeBackend(lambda _: "2,1"), store, capacity=1)

        for query in "ab":  # nothing else is to be sent: each is committed at once
            await asyncio.wait_for(ask(asker, query=query), PATIENCE)
        assert commits == 2
        together = asyncio.gather(*(ask(asker, query=query) for query in "cdef"))
        outcomes = await asyncio.wait_for(together, PATIENCE)

        assert {one.permutation.status for (one,) in outcomes} == {Status.OK}
        assert commits == 3

    async def test_a_query_that_is_given_up_leaves_its_call_to_others(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "2,1")
        backend.gate.clear()
        asker = asker_of(backend, store)
        given_up = asyncio.create_task(ask(asker))
        await backend.arrived.wait()
        joined = asyncio.create_task(ask(asker))
        await settle(store)

        given_up.cancel()
        await asyncio.wait([given_up])
        backend.gate.set()
        (asked,) = await joined

        assert given_up.cancelled()
        assert asked.permutation.status is Status.OK
        assert (len(backend.sent), asker.spent.calls) == (1, 1)

    async def test_what_nobody_waits_for_is_dropped_and_not_sent_again(self, store: Store) -> None:
        backend = FakeBackend(lambda _: UnavailableError("too late", timed_out=True))
        backend.gate.clear()
        asker = asker_of(backend, store, capacity=1)
        queries = [asyncio.create_task(ask(asker, query=str(n))) for n in range(3)]
        await backend.arrived.wait()  # one is in flight, two wait for its slot
        await settle(store)

        for given_up in queries:
            given_up.cancel()
        await asyncio.wait(queries)
        await asyncio.wait_for(asker.drain(), PATIENCE)
        await asyncio.wait_for(asker.hungry(), PATIENCE)

        assert len(backend.sent) == 1
        backend.gate.set()
        backend.reply = lambda _: "2,1"
        (asked,) = await ask(asker, query="0")
        assert asked.permutation.status is Status.OK, "the slot is free, the request can be made"
        assert len(backend.sent) == 2

    async def test_a_query_that_is_given_up_before_it_began_waits_for_nothing(
        self, store: Store
    ) -> None:
        backend = FakeBackend(lambda _: "2,1")
        asker = asker_of(backend, store, capacity=1)
        for turns in range(6):
            given_up = asyncio.create_task(ask(asker, window(), window("abc"), query=str(turns)))
            for _ in range(turns):
                await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.wait([given_up])
            await asyncio.wait_for(asker.drain(), PATIENCE)
            assert not asker._unsent

    async def test_who_asks_the_same_as_it_is_dropped_asks_anew(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "2,1")
        backend.gate.clear()
        asker = asker_of(backend, store)
        given_up = asyncio.create_task(ask(asker))
        await backend.arrived.wait()

        given_up.cancel()
        other = asyncio.create_task(ask(asker))
        backend.gate.set()
        (asked,) = await other

        assert asked.permutation.status is Status.OK

    async def test_equal_requests_in_flight_are_sent_once(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "2,1")
        asker = asker_of(backend, store)

        first, second = await ask(asker, window(), window())
        assert len(backend.sent) == 1
        rounds = await asyncio.gather(*(ask(asker, query="other") for _ in range(5)))

        assert first == second
        assert len({asked.used for (asked,) in rounds}) == 1
        assert len(backend.sent) == 2
        assert (asker.spent.calls, asker.spent.saved) == (2, 5)

    async def test_stored_answers_are_never_sent_again(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "2,1")
        (before,) = await ask(asker_of(backend, store))
        later = asker_of(backend, store, run=2)

        (after,) = await ask(later)

        assert after == before
        assert len(backend.sent) == 1
        assert (later.spent.calls, later.spent.saved) == (0, 1)

    @pytest.mark.parametrize("change", ["query", "wants", "shown", "form", "identity"])
    async def test_another_request_is_another_call(self, store: Store, change: str) -> None:
        backend = FakeBackend(lambda _: "2,1")
        await ask(asker_of(backend, store))

        await ask(
            asker_of(
                backend,
                store,
                form=Form.JSON if change == "form" else Form.GRAMMAR,
                identity="other" if change == "identity" else "id",
            ),
            window("dcba" if change == "shown" else "abcd", 3 if change == "wants" else 2),
            query="other" if change == "query" else "q",
        )

        assert len(backend.sent) == 2

    async def test_an_answer_is_committed_before_it_is_used(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        events: list[str] = []
        add_answer = Store.add_answer

        async def noted(self: Store, key: bytes, run: int, answer: Answer, *, patient: bool) -> int:
            number = await add_answer(self, key, run, answer, patient=patient)
            events.append("committed")
            return number

        monkeypatch.setattr(Store, "add_answer", noted)
        backend = FakeBackend(lambda _: "2,1")

        await ask(asker_of(backend, store, reader=Noting(events)), window(), window())

        assert events == ["committed", "read", "read"]

    async def test_a_store_that_is_full_ends_it(self, store: Store) -> None:
        await store._connection.execute("PRAGMA max_page_count = 1")
        backend = FakeBackend(lambda _: Answer("2,1" + " " * 100_000))

        with pytest.raises(StoreError):
            await ask(asker_of(backend, store))

    async def test_what_was_asked_at_the_same_time_is_kept_when_one_fails(
        self, store: Store
    ) -> None:
        def reply(prompt: ChatPrompt) -> Reply:
            return FatalServerError("key") if prompt.documents == 2 else "2,1"

        backend = FakeBackend(reply)

        with pytest.raises(StoppedError):
            await ask(asker_of(backend, store), window("ab"), window("abc"), window("abcd"))

        later = asker_of(FakeBackend(lambda _: "1,2"), store)
        await ask(later, window("abc"), window("abcd"))
        assert later.spent.calls == 0


class TestSent:
    """When a query hears that one of its windows has gone to a server."""

    @pytest.fixture
    def backend(self) -> FakeBackend:
        backend = FakeBackend(lambda _: "2,1")
        backend.gate.clear()
        return backend

    def begin(self, asker: Asker, query: str, heard: list[str]) -> asyncio.Task[list[Asked]]:
        """A query of two windows that notes under its name what it hears."""
        windows = (window(), window("abc"))
        noted = partial(heard.append, query)
        return asyncio.create_task(asker.ask_round(windows, texts(query), NOW, noted))

    async def test_who_waits_for_a_slot_hears_nothing(
        self, store: Store, backend: FakeBackend
    ) -> None:
        asker, heard = asker_of(backend, store, capacity=1), list[str]()
        queries = [self.begin(asker, name, heard) for name in "xyz"]
        await backend.arrived.wait()
        await settle(store)
        assert heard == ["x"]

        backend.gate.set()
        await asyncio.gather(*queries)
        assert sorted(heard) == ["x", "x", "y", "y", "z", "z"]

    async def test_who_joins_a_call_hears_of_it_as_who_made_it(
        self, store: Store, backend: FakeBackend
    ) -> None:
        asker, heard = asker_of(backend, store, capacity=1), list[str]()

        async def as_another() -> None:
            await asker.ask_round([window()], texts("x"), NOW, partial(heard.append, "y"))

        first = self.begin(asker, "x", heard)
        early = asyncio.create_task(as_another())
        await backend.arrived.wait()
        await settle(store)
        assert heard == ["x", "y"], "the one it waits for was sent"
        late = asyncio.create_task(as_another())
        await settle(store)
        assert heard == ["x", "y", "y"], "it was sent before"

        backend.gate.set()
        await asyncio.gather(first, early, late)

    async def test_a_retry_is_heard_by_those_who_still_wait(self, store: Store) -> None:
        replies: list[Reply] = [UnavailableError("away"), "2,1"]
        heard: list[int] = []
        asker = asker_of(FakeBackend(lambda _: replies.pop(0)), store)

        await asker.ask_round([window()], texts(), NOW, lambda: heard.append(1))

        assert len(heard) == 2

    async def test_what_the_store_answers_was_not_sent(
        self, store: Store, backend: FakeBackend
    ) -> None:
        backend.gate.set()
        await ask(asker_of(backend, store))
        heard: list[int] = []

        await asker_of(backend, store).ask_round([window()], texts(), NOW, lambda: heard.append(1))

        assert not heard


class TestFailures:
    """No answer: what is tried again, what is an outcome, what ends the job."""

    async def test_what_may_pass_is_tried_again(self, store: Store) -> None:
        replies: list[Reply] = [UnavailableError("away"), BadResponseError("torn"), "2,1"]
        backend = FakeBackend(lambda _: replies.pop(0))
        asker = asker_of(backend, store)

        (asked,) = await ask(asker)

        assert asked.permutation.status is Status.OK
        assert (asker.spent.calls, asker.spent.retries) == (1, 2)

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (ContextOverflowError("too long", prompt_tokens=9000, context=256), "context"),
            (RefusedError("no"), "refused"),
            (BadResponseError("HTML"), "bad-response"),
        ],
    )
    async def test_a_window_without_an_answer_keeps_its_prior(
        self, store: Store, error: ServerError, kind: str
    ) -> None:
        # The server itself is well: it answers what it is probed with.
        backend = FakeBackend(lambda prompt: "1" if prompt in PROBES else error)
        asker = asker_of(backend, store)

        first, joined = await ask(asker, window("dcba"), window("dcba"))

        assert first.permutation == Permutation(("a", "b", "c", "d"), 0, Status.ERROR, (kind,))
        assert (first.fault, first.fault_kind, first.used) == (str(error), kind, None)
        assert joined == first
        assert (len(backend.sent) == 1) is not error.retryable
        assert asker.spent.calls == 0

    @pytest.mark.parametrize("error", [UnavailableError("away"), FatalServerError("bad key")])
    async def test_a_server_that_is_gone_stops_the_job(
        self, store: Store, error: ServerError
    ) -> None:
        backend = FakeBackend(lambda _: error)

        with pytest.raises(StoppedError, match=str(error)):
            await ask(asker_of(backend, store))
        assert (len(backend.sent) > 1) is error.retryable

    async def test_an_answer_can_come_after_a_failed_round(self, store: Store) -> None:
        replies: list[Reply] = [RefusedError("no"), "2,1"]
        asker = asker_of(FakeBackend(lambda _: replies.pop(0)), store)

        (failed,), (asked,) = await ask(asker), await ask(asker)

        assert (failed.permutation.status, asked.permutation.status) == (Status.ERROR, Status.OK)
        url = FakeBackend.url
        assert asker.spent.windows == {(Status.ERROR, url): 1, (Status.OK, url): 1}
        assert asker.spent.servers == {url: {"windows": 2, "bad": 1}}
        await ask(asker)
        assert asker.spent.windows[Status.OK, STORED] == 1


class TestReask:
    """A second request that differs, at most one, under its own key."""

    async def test_an_answer_that_was_cut_gets_more_room(self, store: Store) -> None:
        def reply(prompt: ChatPrompt) -> Reply:
            return "2,1" if len(backend.sent) == 2 else Answer("Let me", finish="length")

        backend = FakeBackend(reply)
        asker = asker_of(backend, store)

        (asked,) = await ask(asker)

        first, second = backend.sent
        assert (second.text, second.form) == (first.text, first.form)
        assert second.max_tokens > first.max_tokens
        assert asked.permutation.order[:2] == ("b", "a")
        assert asked.permutation.status is Status.REPAIRED
        assert "asked-again" in asked.permutation.notes
        assert [stored.answer.text for stored in asked.consulted] == ["Let me", "2,1"]
        assert asked.used == asked.consulted[1]
        assert asker.spent.calls == 2

    @pytest.mark.parametrize(
        ("first", "again", "order", "named", "used"),
        [
            ("[3] >", "[3] > [1] > [4]", "cadb", 3, 1),
            ("[3] >", "[2]", "cabd", 1, 0),  # no better
            ("[3] >", "I can't.", "cabd", 1, 0),
            ("Let me see", "[2] > [1] > [3]", "bacd", 3, 1),
        ],
    )
    async def test_of_an_answer_that_was_cut_short_and_another_the_better_counts(
        self, store: Store, first: str, again: str, order: str, named: int, used: int
    ) -> None:
        backend = FakeBackend(
            lambda _: Answer(first, finish="length") if len(backend.sent) == 1 else again
        )

        (asked,) = await ask(asker_of(backend, store, form=Form.TEXT), window(wants=3))

        assert backend.sent[1].max_tokens > backend.sent[0].max_tokens
        assert (asked.permutation.order, asked.permutation.named) == (tuple(order), named)
        assert asked.permutation.status is Status.REPAIRED
        assert len(asked.consulted) == 2
        assert asked.used == asked.consulted[used]
        # The next run decides as this one did, without a call.
        assert await ask(asker_of(backend, store, form=Form.TEXT), window(wants=3)) == [asked]
        assert len(backend.sent) == 2

    @pytest.mark.parametrize("text", ["[3] > [1] >", "[3] > [1] > [2] > ["])
    async def test_an_answer_that_was_cut_late_is_left_alone(self, store: Store, text: str) -> None:
        backend = FakeBackend(lambda _: Answer(text, finish="length"))

        (asked,) = await ask(asker_of(backend, store, form=Form.TEXT), window(wants=3))

        assert len(backend.sent) == 1
        assert asked.permutation.status is Status.REPAIRED

    @pytest.mark.parametrize("form", Form)
    @pytest.mark.parametrize("text", ['{"ranking": [3,' + "\n" * 200, "[3] > [3] > [3] > [3] > [3"])
    async def test_more_room_is_not_given_to_what_would_go_on_for_ever(
        self, store: Store, form: Form, text: str
    ) -> None:
        cut = Answer(text, finish="length")
        backend = FakeBackend(lambda prompt: cut if prompt.form is form else "[2] > [1] > [4]")

        (asked,) = await ask(asker_of(backend, store, form=form), window(wants=3))

        assert [prompt.form for prompt in backend.sent] == list(dict.fromkeys((form, Form.TEXT)))
        assert asked.permutation.named == (1 if form is Form.TEXT else 3)

    @pytest.mark.parametrize("form", [Form.GRAMMAR, Form.REGEX, Form.JSON])
    async def test_a_constrained_answer_without_a_ranking_is_asked_for_as_text(
        self, store: Store, form: Form
    ) -> None:
        backend = FakeBackend(lambda prompt: "[2] > [1]" if prompt.form is Form.TEXT else "sorry")

        (asked,) = await ask(asker_of(backend, store, form=form))

        assert [prompt.form for prompt in backend.sent] == [form, Form.TEXT]
        assert asked.permutation.order == ("b", "a", "c", "d")
        assert asked.permutation.status is Status.REPAIRED

    async def test_text_without_a_ranking_is_not_asked_for_again(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "I can't rank these.")

        (asked,) = await ask(asker_of(backend, store, form=Form.TEXT))

        assert len(backend.sent) == 1
        assert asked.permutation.status is Status.FALLBACK
        assert asked.permutation.order == ("a", "b", "c", "d")

    async def test_there_is_no_third_request(self, store: Store) -> None:
        backend = FakeBackend(lambda _: Answer("", finish="length"))

        (asked,) = await ask(asker_of(backend, store))

        assert len(backend.sent) == 2
        assert asked.permutation.status is Status.FALLBACK
        assert asked.used == asked.consulted[0]
        assert len(asked.consulted) == 2

    async def test_usable_answers_are_left_alone_however_poor(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "[3]")

        (asked,) = await ask(asker_of(backend, store))

        assert len(backend.sent) == 1
        assert asked.permutation.status is Status.REPAIRED

    async def test_it_can_be_switched_off(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "sorry")

        (asked,) = await ask(asker_of(backend, store, re_ask=False))

        assert len(backend.sent) == 1
        assert asked.permutation.status is Status.FALLBACK

    @pytest.mark.parametrize(
        "error",
        [
            ContextOverflowError("too long"),
            ContextOverflowError("", prompt_tokens=200, context=180),
        ],
    )
    async def test_a_prompt_that_is_too_long_is_asked_again_with_shorter_documents(
        self, store: Store, error: ServerError
    ) -> None:
        long = texts("q", "word " * 40)
        backend = FakeBackend(
            lambda prompt: error if prompt.text == backend.sent[0].text else "2,1"
        )
        asker = asker_of(backend, store)

        (asked,) = await asker.ask_round([window()], long, NOW, ignored)
        (again,) = await asker.ask_round([window()], long, NOW, ignored)

        first, second, *more = (prompt.text for prompt in backend.sent)
        assert 0.5 * len(first) < len(second) < 0.95 * len(first)
        assert (asked.permutation.status, asked.permutation.order) == (
            Status.REPAIRED,
            tuple("bacd"),
        )
        assert (asked.fault, asked.fault_kind) == (None, None)
        # The shorter one is kept under its own key; the longer one is still too long.
        assert more == [first]
        assert again.permutation == asked.permutation

    async def test_what_can_t_be_shortened_enough_is_not_asked_again(self, store: Store) -> None:
        error = ContextOverflowError("too long", prompt_tokens=9000, context=256)
        backend = FakeBackend(lambda _: error)

        (asked,) = await ask(asker_of(backend, store))

        assert len(backend.sent) == 1
        assert (asked.permutation.status, asked.fault_kind) == (Status.ERROR, "context")

    async def test_a_body_that_is_no_answer_is_asked_for_as_text(self, store: Store) -> None:
        backend = FakeBackend(
            lambda prompt: (
                BadResponseError("no choice")
                if prompt.form is not Form.TEXT and prompt not in PROBES
                else "1"
                if prompt in PROBES
                else "[2] > [1]"
            )
        )

        (asked,) = await ask(asker_of(backend, store))

        assert asked.permutation.status is Status.REPAIRED
        assert "asked-again" in asked.permutation.notes
        assert [prompt.form for prompt in backend.sent].count(Form.TEXT) == 1

    async def test_a_second_request_that_is_refused_leaves_the_first_answer(
        self, store: Store
    ) -> None:
        backend = FakeBackend(
            lambda prompt: RefusedError("no") if prompt.form is Form.TEXT else "sorry"
        )

        (asked,) = await ask(asker_of(backend, store))

        assert asked.permutation.status is Status.FALLBACK
        assert [stored.answer.text for stored in asked.consulted] == ["sorry"]
        assert asked.fault is None

    async def test_a_server_that_goes_before_the_second_request_stops_the_job(
        self, store: Store
    ) -> None:
        # Else a ranking would be kept that an uninterrupted run would not have made.
        backend = FakeBackend(
            lambda prompt: UnavailableError("away") if len(backend.sent) > 1 else "sorry"
        )

        with pytest.raises(StoppedError, match="away"):
            await ask(asker_of(backend, store))

    async def test_a_resumed_window_asks_neither_again(self, store: Store) -> None:
        backend = FakeBackend(lambda prompt: "2,1" if prompt.form is Form.TEXT else "sorry")
        before = await ask(asker_of(backend, store))
        later = asker_of(backend, store)

        assert await ask(later) == before
        assert len(backend.sent) == 2
        assert later.spent.saved == 2


class TestStop:
    """A stop: nothing more is sent, what is in flight is kept."""

    async def test_calls_in_flight_are_kept_and_the_rest_is_not_sent(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "2,1")
        backend.gate.clear()
        asker = asker_of(backend, store, capacity=1)
        flying = asyncio.create_task(ask(asker, window("abcd")))
        await backend.arrived.wait()
        waiting = asyncio.create_task(ask(asker, window("abc")))
        await settle(store)

        asker.stop()
        backend.gate.set()

        with pytest.raises(StoppedError):
            await waiting
        (asked,) = await flying
        assert asked.permutation.status is Status.OK
        with pytest.raises(StoppedError):
            await ask(asker, window("ab"))
        assert len(backend.sent) == 1

    async def test_what_is_stored_is_still_found(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "2,1")
        (before,) = await ask(asker_of(backend, store))
        stopped = asker_of(backend, store)
        stopped.stop()

        assert await ask(stopped) == [before]

    async def test_a_pause_before_a_retry_ends_at_once(self, store: Store) -> None:
        clock = FastClock()
        clock.stands_still = True
        backend = FakeBackend(lambda _: UnavailableError("away"))
        asker = asker_of(backend, store, clock=clock)
        asking = asyncio.create_task(ask(asker))
        await backend.arrived.wait()
        await settle(store)

        asker.stop()

        with pytest.raises(StoppedError):
            await asking
        assert len(backend.sent) == 1


class TestHunger:
    """More queries are opened only while a slot could go without work."""

    async def test_it_is_hungry_until_as_many_windows_wait_as_there_are_slots(
        self, store: Store
    ) -> None:
        backend = FakeBackend(lambda _: "2,1")
        backend.gate.clear()
        asker = asker_of(backend, store, capacity=2)
        await asyncio.wait_for(asker.hungry(), PATIENCE)
        rounds = [asyncio.create_task(ask(asker, query=str(n))) for n in range(4)]
        await settle(store)

        # Two are in flight and two wait: enough for both slots.
        hungry = asyncio.create_task(asker.hungry())
        await settle(store)
        assert not hungry.done()

        backend.gate.set()
        await asyncio.gather(*rounds)
        await hungry

    @pytest.mark.parametrize("reply", ["2,1", "sorry", RefusedError("no")])
    async def test_every_window_is_counted_off_however_it_ends(
        self, store: Store, reply: Reply
    ) -> None:
        asker = asker_of(FakeBackend(lambda _: reply), store, capacity=1)

        for number in range(3):
            await ask(asker, window(), window(), window("abc"), query=str(number % 2))
            await asyncio.wait_for(asker.hungry(), PATIENCE)

        assert not asker._unsent

    async def test_a_stop_feeds_everyone(self, store: Store) -> None:
        backend = FakeBackend(lambda _: "2,1")
        backend.gate.clear()
        asker = asker_of(backend, store, capacity=1)
        rounds = [asyncio.create_task(ask(asker, query=str(n))) for n in range(3)]
        await backend.arrived.wait()

        asker.stop()
        await asyncio.wait_for(asker.hungry(), PATIENCE)

        backend.gate.set()
        outcomes = await asyncio.gather(*rounds, return_exceptions=True)
        assert sum(isinstance(outcome, StoppedError) for outcome in outcomes) == 2
