"""Makes the publication that settings describe."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from batchrank.errors import TargetError, UsageError
from batchrank.publishing.opening import open_target
from batchrank.publishing.publication import Publication, ready
from batchrank.publishing.source import Source
from batchrank.publishing.target import Target
from batchrank.spec.complaints import as_keys
from batchrank.spec.publishspec import PublishSpec
from batchrank.store.store import Store

_READY_SECONDS = 10.0


def target_of(spec: PublishSpec) -> Target:
    """The target of `spec`; UsageError where it can't be one, or its password is not there."""
    password = None
    if spec.password_env is not None and (password := os.environ.get(spec.password_env)) is None:
        raise UsageError(
            f"password_env: there is no environment variable {spec.password_env} with the password"
        )
    return open_target(spec.target, namespace=spec.namespace, password=password)


async def obstacle(spec: PublishSpec) -> str | None:
    """Why nothing can be published to the target of `spec` now, where that may pass by itself.

    Asks it, and waits no longer than 10 s. Raises UsageError for what time won't mend, in terms of
    a job spec.
    """
    try:
        target = await asyncio.to_thread(target_of, spec)
        try:
            async with asyncio.timeout(_READY_SECONDS):
                await ready(target, spec)
        except TimeoutError:
            return f"{target.name} gave no answer within {_READY_SECONDS:.0f} s"
        except TargetError as error:
            return str(error)
        finally:
            await target.close()
    except UsageError as error:
        raise UsageError(as_keys(str(error), PublishSpec.model_fields)) from error
    return None


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
        async with await Store.open(path) as store:
            source = await Source.of(store, await store.run(number), spec)
            yield Publication(source, target, spec, tick=tick)
    finally:
        await target.close()
