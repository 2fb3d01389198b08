"""One model server of a job: what it can take, whether it is well, that it is still the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from batchrank.backends.base import Backend, Call
from batchrank.calls import Answer, ChatPrompt, Form, Prompt, ServerInfo
from batchrank.clock import Clock
from batchrank.errors import BadResponseError, FatalServerError, OtherModelError
from batchrank.serving.breaker import Breaker
from batchrank.serving.capacity import Capacity
from batchrank.serving.probe import proves
from batchrank.serving.stats import EndpointState, Served

_TWINS = {Form.GRAMMAR: Form.REGEX, Form.REGEX: Form.GRAMMAR}
"""Forms that a prompt asks for in the same words."""
_CHECK_SECONDS = 1.0
"""Between two checks of the identity, for servers that close every connection; no model loads
faster."""


class Endpoint:
    """A lane of `Slots`. `reference` is the server whose encoding makes the keys.

    `info` None: it was not reachable yet, and is left alone until it has been proved. `equal` takes
    it for the same model whatever it discloses; what it discloses may not change all the same.
    """

    def __init__(
        self,
        backend: Backend,
        info: ServerInfo | None,
        reference: ServerInfo,
        *,
        capacity_of: Callable[[ServerInfo], Capacity],
        clock: Clock,
        weight: float = 1.0,
        equal: bool = False,
        proved: bool = False,
    ) -> None:
        self.backend = backend
        self.url = backend.url
        self.capacity = capacity_of(info or reference)
        self.weight = weight
        self.breaker = Breaker(is_open=not proved)
        self.in_flight = 0
        self.served = Served()
        self.is_lost = False
        """It can't serve this job any more."""
        self.cap: int | None = None
        """At most so many calls, while others need the server."""
        self._reference = reference
        self._info = info
        self._identity = info.identity if info else None if equal else reference.identity
        self._capacity_of = capacity_of
        self._clock = clock
        self._checking = asyncio.Lock()
        # Behind the connection that it was described over may stand another model by the first
        # call: it waited for a preflight, for others, for the end of quiet hours.
        self._checked = None if proved else backend.reconnects
        self._checked_at = clock.now() - _CHECK_SECONDS
        self._names: set[str] = set()
        """What answers called their model: those of a name not heard before are looked into."""

    @property
    def is_open(self) -> bool:
        """Whether it takes calls."""
        return not (self.breaker.is_open or self.is_lost)

    @property
    def limit(self) -> int:
        """See `Lane.limit`."""
        if not self.is_open:
            return 0
        limit = self.capacity.limit
        return limit if self.cap is None else min(limit, self.cap)

    @property
    def state(self) -> EndpointState:
        """How it stands now."""
        served = self.served
        return EndpointState(
            self.url,
            "lost" if self.is_lost else "resting" if self.breaker.is_open else "well",
            self.limit,
            self.in_flight,
            served.answered,
            served.failed,
            served.prompt_tokens,
            served.completion_tokens,
            served.seconds,
            tuple(served.latencies),
        )

    async def send(self, prompt: Prompt, call: Call, seconds: float) -> Answer:
        """Send `prompt` once; `call` is what the reference makes of it.

        Raises ServerError as `Backend.send`, and OtherModelError where at the first call,
        behind a new connection, or another name in an answer, stands another model: its answer
        must not be taken for one of the old. Servers call a model as they like: the first answer's
        name stands for the job's.
        """
        if self._checked is None:  # before, not behind: answers that wait for it hold their slots
            await self._check_again()
        answer = await self.backend.send(self._own(prompt, call), seconds)
        if self._checked != self.backend.reconnects:
            await self._check_again()
        if answer.model and answer.model not in self._names:
            async with self._checking:
                if self._names and answer.model not in self._names:
                    await self._check()
                self._names.add(answer.model)
        return answer

    async def revive(self, trial: Prompt, seconds: float) -> None:
        """Prove that the server answers again, as the same model, in the way of the job.

        GETs may be answered while POSTs hang, so it takes a completion. Raises as `send`.
        """
        await self._check()
        asked = self._worded(trial)
        answer = await self.backend.send(self.backend.encode(asked), seconds)
        if not proves(answer, asked):
            raise BadResponseError("it does not answer in the form that the job is asked in")

    def _own(self, prompt: Prompt, call: Call) -> Call:
        assert self._info is not None
        same = (self._reference.kind, self._reference.model)
        if (self._info.kind, self._info.model) == same:
            return call
        return self.backend.encode(self._worded(prompt))

    def _worded(self, prompt: Prompt) -> Prompt:
        """The prompt in a form that this server has."""
        assert self._info is not None
        if not isinstance(prompt, ChatPrompt) or prompt.form in self._info.forms:
            return prompt
        twin = _TWINS.get(prompt.form)
        if twin not in self._info.forms:
            raise FatalServerError(f"It has no {prompt.form} form of answers as the others have.")
        return replace(prompt, form=twin)

    async def _check_again(self) -> None:
        async with self._checking:
            now, seen = self._clock.now(), self.backend.reconnects
            if self._checked != seen and now - self._checked_at >= _CHECK_SECONDS:
                await self._check()
                self._checked, self._checked_at = seen, now

    async def _check(self) -> None:
        info = await self.backend.describe()
        if self._identity is None:
            self._identity = info.identity
        if info.identity != self._identity:
            if self._info is None:
                raise OtherModelError(
                    f"it serves {info.identity}, and the job's model is {self._identity}"
                )
            raise OtherModelError(f"its model has changed from {self._identity} to {info.identity}")
        if self._info is None:
            self.capacity = self._capacity_of(info)
        self._info = info
