"""`rerank` and `rerank_stream`: a job whose requests and rankings are a program's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from batchrank.errors import BatchrankError, LostServerError, RejectedError, StoppedError
from batchrank.formats.rows import Row
from batchrank.formats.sources.source import Source
from batchrank.library.feed import Feed
from batchrank.library.requests import Requests, check_requests
from batchrank.library.settings import check_followed, in_python
from batchrank.measuring.scratch import scratch_folder
from batchrank.progress.snapshot import Snapshot
from batchrank.results.writing import make_row
from batchrank.running.report import Report
from batchrank.running.runner import Runner
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import make_spec
from batchrank.store.queries import finished_lines
from batchrank.store.store import Store

_NAME = "(requests of a program)"
_log = logging.getLogger("batchrank")


async def rerank(
    requests: Requests,
    *,
    model: str | None = None,
    base_url: str | None = None,
    store: Path | str | None = None,
    spec: JobSpec | None = None,
) -> list[Row]:
    """Rerank all requests; one row each, in their order, once every gate is passed.

    `requests` are `Request` objects or mappings of the shapes that a JSONL input has, from any
    iterable, asynchronous or not. `spec` holds all other settings, but for those that say where
    requests come from and where rankings go; `model`, `base_url` and `store` win over it. With a
    `store` answers are kept in that file: what is killed goes on from there, and nothing is asked
    twice. Without one they are forgotten at the end. A request that can't be used, whatever it is,
    has a row with status `failed`. A row has the best `top_k` documents, where
    the spec says so.

    Raises:
        UsageError: a setting can't be used, or is one that only the command line follows; the
            requests are no iterable.
        NoServerError: there is no usable model server.
        RejectedError: the run is beyond a gate of the spec (`max_fallback`, `max_failed`, …).
        StoppedError: it stopped early and can be resumed: the servers stayed away, the time was up.
            Like a RejectedError it has what was ranked as its `rows`.
        StoreError, DiskError: the store can't be used; what was committed is kept.
    """
    rows: list[Row] = []
    try:
        async for row in rerank_stream(
            requests, model=model, base_url=base_url, store=store, spec=spec
        ):
            rows.append(row)  # noqa: PERF401 - kept where it ends with an error
    except (RejectedError, StoppedError) as error:
        error.rows = tuple(rows)
        raise
    return rows


async def rerank_stream(
    requests: Requests,
    *,
    model: str | None = None,
    base_url: str | None = None,
    store: Path | str | None = None,
    spec: JobSpec | None = None,
) -> AsyncGenerator[Row, None]:
    """The same as an asynchronous iterator: rows in the order of the requests, as they are ready.

    Requests are taken as they are needed, so there may be any number of them. Gates are judged at
    the end: a RejectedError then comes after the last row, and says that none of them should be
    used. Leaving the loop early (with `contextlib.aclosing`, or by cancelling) stops the run.
    Raises as `rerank`.
    """
    check_requests(requests)
    own = {"model": model, "base_url": base_url, "store": store}
    given = {name: value for name, value in own.items() if value is not None}
    kept = spec.model_dump(exclude_unset=True, by_alias=True) if spec is not None else {}
    if spec is not None:
        check_followed(spec)
    async with AsyncExitStack() as stack:
        if "store" not in kept | given:
            scratch = scratch_folder()
            folder = await asyncio.to_thread(scratch.__enter__)
            stack.push_async_callback(asyncio.to_thread, scratch.__exit__, None, None, None)
            given["store"] = folder / "store.sqlite"
        try:
            rows = _rows(requests, make_spec(kept | given))
            stack.push_async_callback(rows.aclose)
            async for row in rows:
                yield row
        except BatchrankError as error:
            error.args = (in_python(str(error)),)
            raise


async def _rows(requests: Requests, spec: JobSpec) -> AsyncGenerator[Row, None]:
    feed = Feed(requests)
    shown: list[Snapshot] = []
    ticked = asyncio.Event()

    def tick(snapshot: Snapshot) -> None:
        shown[:] = [snapshot]
        ticked.set()

    source = Source(_NAME, blocks=feed.blocks())
    runner = Runner(spec, source, None, fresh=False, say=_say, tick=tick)
    filling = asyncio.create_task(feed.fill())
    filling.add_done_callback(lambda task: _stop_on_failure(task, runner))
    work = asyncio.create_task(runner.run())
    work.add_done_callback(lambda _: ticked.set())
    written = _Written(spec.store, spec.top_k)
    try:
        while not work.done():
            await ticked.wait()
            ticked.clear()
            if shown and shown[0].run is not None:
                async for row in written.rows(shown[0].run, is_over=False):
                    yield row
        if filling.done():
            await filling  # what the program's own iterator raised comes before all else
        report = await work
        for warning in report.warnings:
            _log.warning("%s", in_python(warning))
        async for row in written.rows(report.run.id, is_over=True):
            yield row
        _raise_for(report)
    finally:
        runner.stop(StoppedError("nobody takes the rankings any more"))
        runner.abort()
        feed.close()
        filling.cancel()
        await asyncio.gather(filling, work, return_exceptions=True)
        await written.close()


def _say(text: str) -> None:
    _log.info("%s", in_python(text))


def _stop_on_failure(filling: asyncio.Task[None], runner: Runner) -> None:
    if not filling.cancelled() and filling.exception() is not None:
        runner.stop(StoppedError("the requests ended with an error"))


def _raise_for(report: Report) -> None:
    said = "; ".join(report.reasons)
    if report.examples:
        said += f" (for example {report.examples[0]})"
    if report.exit_code == RejectedError.exit_code:
        raise RejectedError(said)
    if report.exit_code == LostServerError.exit_code:
        raise LostServerError(said)
    if report.exit_code:
        raise StoppedError(said)


class _Written:
    """What a run has written to its store, read in the order of the input, each row once.

    A row has the best `top_k` documents.
    """

    def __init__(self, path: Path, top_k: int | None) -> None:
        self._path = path
        self._top_k = top_k
        self._store: Store | None = None
        self._position = 0

    async def rows(self, run: int, *, is_over: bool) -> AsyncIterator[Row]:
        """The rows that are new; while the run is not over, up to the first that is not ready."""
        if self._store is None:
            self._store = await Store.open(self._path)
        settings = (await self._store.run(run)).settings
        while found := await finished_lines(self._store, run, self._position, is_over=is_over):
            self._position += len(found)
            for line, ranked in found:
                row = make_row(line, ranked, settings)
                yield replace(row, ranking=row.ranking[: self._top_k])

    async def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            await self._store.close()
