"""Makes the publication that settings describe."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from batchrank.errors import UsageError
from batchrank.publishing.opening import open_target
from batchrank.publishing.publication import Publication
from batchrank.publishing.source import Source
from batchrank.publishing.target import Target
from batchrank.spec.publishspec import PublishSpec
from batchrank.store.store import Store


def target_of(spec: PublishSpec) -> Target:
    """The target of `spec`; UsageError where it can't be one, or its password is not there."""
    password = None
    if spec.password_env is not None and (password := os.environ.get(spec.password_env)) is None:
        raise UsageError(
            f"password_env: there is no environment variable {spec.password_env} with the password"
        )
    return open_target(spec.target, namespace=spec.namespace, password=password)


@asynccontextmanager
async def publication_of(
    path: Path,
    number: int | None,
    spec: PublishSpec,
    tick: Callable[[float, str], None] = lambda share, what: None,
) -> AsyncIterator[Publication]:
    """The publication of a run (None: the latest) of the store at `path`, ready to begin.

    Raises RejectedError where no gate passed the run, UsageError where there is none or the target
    can't be one.
    """
    target = await asyncio.to_thread(target_of, spec)
    try:
        store = await Store.open(path)
        try:
            source = await Source.of(store, await store.run(number), spec)
            yield Publication(source, target, spec, tick=tick)
        finally:
            await store.close()
    finally:
        await target.close()
