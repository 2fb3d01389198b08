"""Spreads calls over a job's servers: retries, fails over, waits for servers that are down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from random import Random

from batchrank.backends.base import Backend, Call
from batchrank.calls import Answer, Prompt
from batchrank.clock import Clock
from batchrank.errors import (
    BatchrankError,
    FatalServerError,
    LostServerError,
    ModelChangedError,
    OtherModelError,
    OverloadedError,
    ServerError,
    StoppedError,
    UnavailableError,
    naming,
)
from batchrank.serving.backoff import MAX_ATTEMPTS, delay_of, next_delay
from batchrank.serving.endpoint import Endpoint
from batchrank.serving.outage import Outage
from batchrank.serving.slots import Priority, Slots
from batchrank.serving.stats import EndpointState

_log = logging.getLogger(__name__)

_MOST_GROWTH = 4
"""A call that came too late gets twice the time, then four times, not more."""
_MOST_STEPS = 5
"""Doublings of the delay between probes: one in 4 to 8 s harms no server."""
_TOLD_RELAPSES = 2
"""That a server is left alone is told so often while it answers probes and nothing else."""


class Pool:
    """Answers calls from one of several endpoints, at most `most` at once.

    `trial` proves that one of them is back.

    A server that fails is left alone and probed until it is back; while none answers, calls wait.
    `wait_for_server` seconds later they, and all that come, raise LostServerError.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        trial: Prompt,
        *,
        timeout: float,
        wait_for_server: float,
        say: Callable[[str], None],
        clock: Clock,
        most: int | None = None,
    ) -> None:
        self._endpoints = list(endpoints)
        self._trial = trial
        self._timeout = timeout
        self._say = say
        self._clock = clock
        self._random = Random()  # noqa: S311 - jitter, no secret
        self._slots = Slots(self._endpoints, most)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._stopped: Exception | None = None
        self._released = asyncio.Event()
        self._released.set()
        self._held: str | None = None
        self._outage = Outage(wait_for_server, clock)
        for endpoint in endpoints:
            self._prove(endpoint)

    @property
    def capacity(self) -> int:
        """Calls that may be in flight now."""
        return self._slots.capacity

    @property
    def in_flight(self) -> int:
        """Calls that are."""
        return self._slots.in_flight

    @property
    def states(self) -> tuple[EndpointState, ...]:
        """Each server as it stands now."""
        return tuple(endpoint.state for endpoint in self._endpoints)

    @property
    def waits(self) -> str | None:
        """Why nothing is sent at all; None while it is."""
        if self._held is not None:
            return self._held
        if crowded := self.crowded:
            return f"held back while others wait at {', '.join(crowded)}"
        return self._outage.told

    @property
    def crowded(self) -> list[str]:
        """URLs of servers where others wait, if nothing at all is sent for that."""
        if self._held is not None or self._slots.capacity:
            return []
        return [one.url for one in self._endpoints if one.is_open and one.cap == 0]

    def join(self, endpoint: Endpoint) -> None:
        """Use another server from now on, once a probe has proved it."""
        if self._stopped is None:
            self._endpoints.append(endpoint)
            self._prove(endpoint)

    def leave(self, backend: Backend) -> None:
        """Use a server no more, since it is gone for good; what it held is asked for elsewhere."""
        for endpoint in self._endpoints:
            if endpoint.backend is backend and not endpoint.is_lost:
                gone = UnavailableError("it has left", unreached=True)
                self._failed(endpoint, gone, endpoint.capacity.generation)
                endpoint.is_lost = True

    def watch(self, work: Coroutine[None, None, None]) -> None:
        """Run `work` beside the calls until the pool stops; its failure is the pool's."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def hold(self, why: str) -> None:
        """Send nothing until `release`."""
        self._held = why
        self._released.clear()
        self._slots.hold()

    def release(self) -> None:
        """Go on; servers that were down in the meantime get their full time again."""
        self._held = None
        self._released.set()
        self._outage.restart()
        self._slots.fill()

    def refill(self) -> None:
        """Send what fits now, after an endpoint's limit was raised."""
        if self._held is None:
            self._slots.fill()

    def finish(self) -> None:
        """Let the queries that have most left go first: no other follows."""
        self._slots.finish()

    def stop(self, error: Exception | None = None) -> None:
        """Send nothing more: calls not sent yet raise `error`, those in flight go on."""
        self._stopped = self._stopped or error or StoppedError("stopped before it was sent")
        self._stopping.set()
        self._slots.stop(self._stopped)
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Stop, and wait until nothing runs any more."""
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def encode(self, prompt: Prompt) -> Call:
        """The request for `prompt` as the first endpoint sends it: what keys are made of."""
        return self._endpoints[0].backend.encode(prompt)

    async def answer(
        self, prompt: Prompt, call: Call, priority: Priority, sent: Callable[[str], None]
    ) -> Answer:
        """The answer to `prompt`, of which `call` is the reference's encoding.

        `sent` is called with a server's URL each time it is sent there. Raises ServerError where
        the request can't be answered though servers are well, StoppedError where `stop` was called
        or no server is left.
        """
        attempts, growth = 0, 1
        avoid: Endpoint | None = None
        while True:
            async with self._slots.slot(priority, avoid) as endpoint:
                sent(endpoint.url)
                try:
                    return await self._attempt(endpoint, prompt, call, self._timeout * growth)
                except ServerError as error:
                    fault = error
                    fault.endpoint = endpoint.url
                    _log.warning("call failed: %s", error, extra={"endpoint": endpoint.url})
            if not fault.retryable and not isinstance(fault, FatalServerError):
                raise fault
            avoid = endpoint
            if _is_late(fault):
                growth = min(growth * 2, _MOST_GROWTH)
            down = not endpoint.is_open
            if down and not _may_be_the_cause(fault):
                attempts = 0
                continue
            attempts += 1
            if down and attempts < MAX_ATTEMPTS:
                continue  # until a probe has succeeded, or another server takes it
            asked = fault.retry_after if isinstance(fault, UnavailableError) else None
            if self._slots.has_other(endpoint):
                asked = None
            delay = next_delay(attempts, asked, self._random)
            if delay is None:
                raise fault
            await self._pause(delay)

    async def _attempt(
        self, endpoint: Endpoint, prompt: Prompt, call: Call, seconds: float
    ) -> Answer:
        capacity, breaker = endpoint.capacity, endpoint.breaker
        generation, limit, began = capacity.generation, capacity.limit, self._clock.now()
        try:
            answer = await endpoint.send(prompt, call, seconds)
        except FatalServerError as error:
            endpoint.served.failed += 1
            self._lose(endpoint, error)
            raise
        except ServerError as error:
            endpoint.served.failed += 1
            if error.retryable:
                self._failed(endpoint, error, generation)
            else:
                breaker.succeeded()  # a refusal is an answer too
            raise
        except BatchrankError as error:
            self.stop(error)
            raise
        breaker.succeeded()
        endpoint.served.add(answer)
        now = self._clock.now()
        capacity.answered(now, now - began, full=endpoint.in_flight >= limit)
        if capacity.limit > limit:
            self.refill()
        return answer

    def _prove(self, endpoint: Endpoint) -> None:
        if not endpoint.is_open:
            self.watch(self._revive(endpoint, 0.0, told=False))

    def _failed(self, endpoint: Endpoint, error: ServerError, generation: int) -> None:
        overloaded = isinstance(error, OverloadedError)
        if isinstance(error, UnavailableError) and (error.loading or error.unreached):
            opened = endpoint.breaker.trip()
        else:
            opened = endpoint.breaker.failed(overloaded=overloaded)
        if _is_late(error) or (opened and overloaded):
            # Slow by queueing, or turned away: fewer at a time, not the same again at once.
            endpoint.capacity.strained(generation)
        if opened:
            asked = error.retry_after if isinstance(error, UnavailableError) else None
            # One that answers probes and nothing else is probed ever more seldom, as if it did not.
            relapses = endpoint.breaker.relapses
            if not overloaded and relapses < _TOLD_RELAPSES:
                self._say(_left_alone(endpoint, error))
            self._note_down(error)
            delay = delay_of(min(1 + relapses, _MOST_STEPS), asked, self._random)
            self.watch(self._revive(endpoint, delay, told=True))

    def _note_down(self, error: ServerError) -> None:
        none_is_open = not any(one.is_open for one in self._endpoints)
        self._outage.heard(error, none_is_open=none_is_open)

    def _lose(self, endpoint: Endpoint, error: FatalServerError) -> None:
        if endpoint.is_lost:
            return
        endpoint.is_lost = True
        if all(one.is_lost for one in self._endpoints):
            said = naming(endpoint.url, error)
            if isinstance(error, OtherModelError):
                self.stop(ModelChangedError(said))
            else:
                self.stop(LostServerError(f"the model server can't go on: {said}"))
        else:
            self._say(f"warning: {endpoint.url} can't be used and is left out: {error}")
            self._note_down(error)

    async def _revive(self, endpoint: Endpoint, delay: float, *, told: bool) -> None:
        """Probe until the server answers; stop the pool where none has for too long."""
        probes = 0
        while True:
            await self._clock.sleep(min(delay, max(self._outage.left, 0.0)))
            await self._released.wait()
            if endpoint.is_lost and not all(one.is_lost for one in self._endpoints):
                return  # while others may come back, or come, they are waited for
            left = self._outage.left
            if left <= 0:
                self.stop(self._outage.surrender)
                return
            if endpoint.is_lost:
                continue  # it has left: only the time is kept, until another comes
            probes += 1
            try:
                await endpoint.revive(self._trial, min(self._timeout, left))
            except FatalServerError as error:
                self._lose(endpoint, error)
                return
            except ServerError as error:
                if not told:
                    self._say(_left_alone(endpoint, error))
                told = True
                self._note_down(error)
                asked = error.retry_after if isinstance(error, UnavailableError) else None
                delay = delay_of(min(probes, _MOST_STEPS), asked, self._random)
            else:
                break
        endpoint.breaker.close()
        self._outage.end()
        self.refill()

    async def _pause(self, seconds: float) -> None:
        sleep = asyncio.ensure_future(self._clock.sleep(seconds))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((sleep, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            stopping.cancel()
        if self._stopped is not None:
            raise self._stopped

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stop(error if isinstance(error, Exception) else RuntimeError(str(error)))


def _is_late(error: ServerError) -> bool:
    return isinstance(error, UnavailableError) and error.timed_out


def _may_be_the_cause(error: ServerError) -> bool:
    """Whether a request may have brought a server down that then failed with this."""
    if isinstance(error, UnavailableError):
        return not (error.loading or error.unreached or isinstance(error, OverloadedError))
    return True


def _left_alone(endpoint: Endpoint, error: ServerError) -> str:
    return f"warning: {endpoint.url} is left alone until it answers a probe: {error}"
