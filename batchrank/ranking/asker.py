"""Asks one window: joins calls in flight, looks up the store, calls, retries, records, reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from batchrank.answers import unanswered
from batchrank.backends.base import Call
from batchrank.calls import Answer, Prompt
from batchrank.errors import BudgetSpentError, PromptError, ServerError
from batchrank.keys import answer_key
from batchrank.logs import about_window
from batchrank.prompts.render import QueryTexts
from batchrank.ranking.inflight import Flight, Place
from batchrank.ranking.outcomes import NOBODY, STORED, Asked, Spent
from batchrank.ranking.reask import prompt_after
from batchrank.readings.base import Way
from batchrank.serving.pool import Pool
from batchrank.serving.slots import Priority
from batchrank.store.records import StoredAnswer
from batchrank.store.store import Store
from batchrank.values import Status, Window


@dataclass(frozen=True, slots=True)
class Manner:
    """How windows are asked: what of `JobSpec` and of the server an asker needs.

    `ways` has one entry a stage.
    """

    identity: str
    ways: tuple[Way, ...]
    re_ask: bool


class Asker:
    """Answers windows from the store or the model; each exact request is asked once at a time.

    A request that no window waits for any more is dropped, wherever it is.

    With `most_calls` a window that would need one call more raises BudgetSpentError.
    """

    def __init__(
        self, pool: Pool, store: Store, run: int, manner: Manner, most_calls: int | None = None
    ) -> None:
        self.spent = Spent()
        self._pool = pool
        self._store = store
        self._run = run
        self._manner = manner
        self._calls_left = most_calls
        self._is_stopping = False
        self._flying: dict[bytes, Flight] = {}
        self._tasks: set[asyncio.Task[StoredAnswer]] = set()
        self._unsent: set[Place] = set()
        """Windows that are to be sent, until they are or turn out to need no call."""
        self._hungry = asyncio.Event()
        self._hungry.set()

    async def hungry(self) -> None:
        """Wait until fewer windows are ready than slots could take at once."""
        await self._hungry.wait()

    def finish(self) -> None:
        """Let the queries that have most left go first: no other follows."""
        self._pool.finish()

    def stop(self) -> None:
        """Send nothing more: windows not sent yet raise StoppedError, those in flight go on."""
        self._is_stopping = True
        self._pool.stop()
        self._hungry.set()

    def abort(self) -> None:
        """Drop what is in flight."""
        for task in self._tasks:
            task.cancel()

    async def drain(self) -> None:
        """Wait until nothing is on its way any more."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def ask_round(
        self,
        windows: Sequence[Window],
        texts: QueryTexts,
        priority: Priority,
        sent: Callable[[], None],
    ) -> list[Asked]:
        """Ask windows at the same time.

        `sent` is called each time that one of them is sent to a server, or joins one of another
        query that was. A window that gets no answer, or whose prompt can't be made, is an outcome
        (Status.ERROR), not an exception. Raises
        StoppedError where `stop` was called or the server is gone, StoreError where an answer can't
        be kept.
        """
        places = [Place(sent) for _ in windows]
        self._queue(*places)
        try:
            outcomes = await asyncio.gather(
                *(
                    self._ask(number, window, texts, priority, place)
                    for number, (window, place) in enumerate(zip(windows, places, strict=True))
                ),
                return_exceptions=True,
            )
        finally:
            self._unqueue(*places)
        asked = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            asked.append(outcome)
        return asked

    async def _ask(
        self, number: int, window: Window, texts: QueryTexts, priority: Priority, place: Place
    ) -> Asked:
        about_window(number)
        way = self._manner.ways[window.stage]
        reader = way.reader
        wanted = reader.wanted(window)
        try:
            prompt = reader.prompt(texts, window, way.means)
        except PromptError as error:
            self._unqueue(place)
            outcome = unanswered(window, error.kind)
            self.spent.windows[outcome.status, NOBODY] += 1
            return Asked(window, outcome, wanted, None, (), str(error), error.kind)
        used, second, is_second = None, None, False
        fault: ServerError | None = None
        try:
            used = await self._answer(way, prompt, priority, place)
        except ServerError as error:
            fault = error
            outcome = unanswered(window, error.kind)
            with suppress(PromptError):  # what the first request came to stands
                second = prompt_after(error, reader, texts, window, way.means, prompt)
        else:
            outcome = reader.read(window, used.answer)
            is_cut = used.answer.finish == "length" and outcome.is_thin(wanted)
            if is_cut or outcome.status is Status.FALLBACK:
                with suppress(PromptError):
                    second = reader.second(texts, window, way.means, prompt, used.answer)
        consulted = () if used is None else (used,)
        if self._manner.re_ask and second is not None:
            self._queue(place)
            try:
                again = await self._answer(way, second, priority, place)
            except ServerError:
                pass  # what the first request came to stands, and says why
            else:
                consulted = (*consulted, again)
                other = reader.read(window, again.answer).asked_again()
                # Of an unusable answer nothing is named.
                if used is None or other.named > outcome.named:
                    used, outcome, fault, is_second = again, other, None, True
        endpoint = used.source if used is not None else fault.endpoint if fault is not None else ""
        self.spent.windows[outcome.status, endpoint or STORED] += 1
        said, kind = (str(fault), fault.kind) if fault is not None else (None, None)
        return Asked(window, outcome, wanted, used, consulted, said, kind, endpoint, is_second)

    async def _answer(
        self, way: Way, prompt: Prompt, priority: Priority, place: Place
    ) -> StoredAnswer:
        """The committed answer to a prompt, whoever paid for it."""
        call = self._pool.encode(prompt)
        key = answer_key(self._manner.identity, way.means.template.digest, call.path, call.body)
        if (flight := self._flying.get(key)) is not None:
            self._unqueue(place)
            self.spent.saved += 1
        else:
            # A task of its own: whoever else has joined gets the answer, also when the query that
            # asked first is given up.
            flight = self._flying[key] = Flight()
            task = asyncio.create_task(self._find_or_call(key, prompt, call, priority, flight))
            flight.task = task
            self._tasks.add(task)
            task.add_done_callback(partial(self._land, key, flight))
        flight.join(place)
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting.remove(place)
            if not flight.waiting and not flight.task.done():
                del self._flying[key]  # who asks the same from now on must not join it
                flight.task.cancel()

    def _land(self, key: bytes, flight: Flight, task: asyncio.Task[StoredAnswer]) -> None:
        self._tasks.discard(task)
        if self._flying.get(key) is flight:
            del self._flying[key]
        if not task.cancelled():
            task.exception()  # nobody may be waiting for it any more

    async def _find_or_call(
        self, key: bytes, prompt: Prompt, call: Call, priority: Priority, flight: Flight
    ) -> StoredAnswer:
        if (stored := await self._store.find_answer(key)) is not None:
            self._unqueue(*flight.waiting)
            self.spent.saved += 1
            return stored
        if self._calls_left is not None:
            if not self._calls_left:
                raise BudgetSpentError("the calls that were allowed are spent")
            self._calls_left -= 1
        answer, source = await self._call(prompt, call, priority, flight)
        self.spent.calls += 1
        self.spent.usage += answer.usage
        self.spent.seconds += answer.seconds
        # Committed before it is used: what was paid for is never paid for twice. While others are
        # there to be sent, the slots don't wait for it.
        has_more = bool(self._unsent)
        number = await self._store.add_answer(key, self._run, answer, patient=has_more)
        return StoredAnswer(number, answer, source)

    async def _call(
        self, prompt: Prompt, call: Call, priority: Priority, flight: Flight
    ) -> tuple[Answer, str]:
        """The model's answer, and the URL of the server that gave it."""
        source = ""

        def sent(url: str) -> None:
            nonlocal source
            self.spent.retries += bool(source)
            source = url
            self._unqueue(*flight.waiting)
            flight.sent()

        return await self._pool.answer(prompt, call, priority, sent), source

    def _queue(self, *places: Place) -> None:
        self._unsent.update(places)
        self._feed()

    def _unqueue(self, *places: Place) -> None:
        self._unsent.difference_update(places)
        self._feed()

    def _feed(self) -> None:
        # While no server takes calls one window may wait: by its leaving is seen that one does.
        if len(self._unsent) < max(1, self._pool.capacity) or self._is_stopping:
            self._hungry.set()
        else:
            self._hungry.clear()
