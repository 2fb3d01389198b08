"""A job's link to its model server: opened when the first window needs it, proved, remembered."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Self

from batchrank.backends.base import Backend
from batchrank.calls import ServerInfo
from batchrank.clock import Clock
from batchrank.errors import UnfitServerError
from batchrank.serving.capacity import capacity_of
from batchrank.serving.connection import Connection, Member, connect
from batchrank.serving.endpoint import Endpoint
from batchrank.serving.firstserver import led_by_one_awake, prove
from batchrank.serving.membership import follow
from batchrank.serving.pool import Pool
from batchrank.serving.preflight import Profile
from batchrank.serving.probe import probe_of
from batchrank.serving.quiethours import Curfew
from batchrank.serving.sharing import give_way, keep_quiet_hours
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import Templates
from batchrank.spec.times import parse_duration
from batchrank.spec.ways import answer_tokens
from batchrank.store.profiles import recall, remember
from batchrank.store.store import Store


class Session:
    """Leaving the context closes the link. Finished work is read without ever opening it."""

    def __init__(
        self,
        spec: JobSpec,
        templates: Templates,
        store: Store,
        curfew: Curfew,
        say: Callable[[str], None],
    ) -> None:
        self.remembered: Profile | None = None
        self.waits: str | None = None
        """What it waits for while it is opened."""
        self._spec = spec
        self._templates = templates
        self._store = store
        self._curfew = curfew
        self._say = say
        self._stack = AsyncExitStack()
        self._connection: Connection | None = None
        self._profile: Profile | None = None

    async def __aenter__(self) -> Self:
        stored = await recall(self._store, self._spec.target())
        self.remembered = Profile.from_dict(stored) if stored else None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def connection(self) -> Connection:
        """The open link; only after `open`."""
        assert self._connection is not None
        return self._connection

    def make_pool(self, profile: Profile, clock: Clock) -> Pool:
        """What sends the calls of a job, until the session ends; only after `open`."""
        spec, connection = self._spec, self.connection
        reference = connection.members[0].info or connection.info
        weights = sum(member.spec.weight for member in connection.members)

        def endpoint_of(member: Member) -> Endpoint:
            share = None
            if spec.concurrency is not None:
                share = max(1, round(spec.concurrency * member.spec.weight / weights))
            return Endpoint(
                member.backend,
                member.info,
                reference,
                capacity_of=partial(capacity_of, fixed=share),
                clock=clock,
                weight=member.spec.weight,
                equal=member.spec.equal,
                proved=member is connection.members[0],
            )

        endpoints = [endpoint_of(member) for member in connection.members]
        pool = Pool(
            endpoints,
            probe_of({stage.answer for stage in spec.stages}, profile.form),
            timeout=spec.timeout,
            wait_for_server=parse_duration(spec.wait_for_server),
            say=self._say,
            clock=clock,
            most=spec.concurrency,
        )
        self._stack.push_async_callback(pool.close)
        if self._curfew.hours is not None:
            pool.watch(keep_quiet_hours(pool, self._curfew))
        for endpoint in endpoints:
            self._be_polite(pool, endpoint, clock)
        if connection.changes is not None:

            def taken_in(backend: Backend, info: ServerInfo) -> Endpoint:
                endpoint = endpoint_of(Member(connection.members[0].spec, backend, info))
                self._be_polite(pool, endpoint, clock)
                return endpoint

            changes = connection.changes
            pool.watch(follow(pool, changes, reference.identity, taken_in, self._say, clock))
        return pool

    def _be_polite(self, pool: Pool, endpoint: Endpoint, clock: Clock) -> None:
        if self._spec.max_waiting is not None:
            pool.watch(give_way(pool, endpoint, self._spec.max_waiting, self._say, clock))

    def _wait(self, why: str) -> None:
        self.waits = why
        self._say(why)

    async def open(self, *, resuming: bool) -> Profile:
        """Connect, outside of quiet hours, and say what the server is; again: the same.

        A run that was interrupted and goes on with the same model is not put through the preflight
        again; of several servers one that is awake leads. Raises NoServerError; UnfitServerError
        also where no answer of the trial could be read and the job's gate would not let that pass.
        """
        if self._profile is None:
            spec = self._spec
            self._connection = connection = await self._stack.enter_async_context(
                connect(spec, answer_tokens(spec), self._say, self._wait, self._curfew.gate)
            )
            self.waits = None
            known, gate = self.remembered, self._spec.max_fallback
            resuming = resuming and known is not None and known.refusal(gate) is None
            if resuming and len(connection.members) > 1:
                connection = await led_by_one_awake(connection, spec, self._say, self._wait)
                self._connection = connection
            if resuming and known and known.identity == connection.info.identity:
                profile = known
            else:
                connection, profile = await prove(
                    connection, spec, self._templates, self._say, self._wait
                )
                self._connection = connection
            self.waits = None
            if self._spec.priority == "background" and not connection.backend.in_background:
                self._say(
                    f"warning: {connection.backend.url} does not schedule by priority: "
                    "--priority background has no effect there"
                )
            for warning in profile.warnings:
                self._say(f"warning: {warning}")
            if (refusal := profile.refusal(gate)) is not None:
                raise UnfitServerError(f"{connection.backend.url}: {refusal}")
            if profile is not known:
                await remember(self._store, self._spec.target(), profile.as_dict())
            self._profile = profile
        return self._profile
