"""A job's link to its model server: opened when the first window needs it, proved, remembered."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Self

from batchrank.connection import Connection, connect
from batchrank.jobspec import JobSpec
from batchrank.preflight import Profile, answer_tokens, preflight
from batchrank.prompts.template import Template
from batchrank.store.store import Store


class Session:
    """Leaving the context closes the link. Finished work is read without ever opening it."""

    def __init__(
        self, spec: JobSpec, template: Template, store: Store, say: Callable[[str], None]
    ) -> None:
        self.remembered: Profile | None = None
        self._spec = spec
        self._template = template
        self._store = store
        self._say = say
        self._stack = AsyncExitStack()
        self._connection: Connection | None = None
        self._profile: Profile | None = None

    async def __aenter__(self) -> Self:
        stored = await self._store.recall(self._spec.target())
        self.remembered = Profile.from_dict(stored) if stored else None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def connection(self) -> Connection:
        """The open link; only after `open`."""
        assert self._connection is not None
        return self._connection

    async def open(self, *, resuming: bool) -> Profile:
        """Connect and say what the server is; a second call returns the same.

        A run that was interrupted and goes on with the same model is not put through the preflight
        again. Raises NoServerError.
        """
        if self._profile is None:
            self._connection = connection = await self._stack.enter_async_context(
                connect(self._spec, answer_tokens(self._spec), self._say)
            )
            known = self.remembered
            if resuming and known and known.identity == connection.info.identity:
                self._profile = known
            else:
                self._profile = await preflight(connection, self._spec, self._template)
                await self._store.remember(self._spec.target(), self._profile.as_dict())
            for warning in self._profile.warnings:
                self._say(f"warning: {warning}")
        return self._profile
