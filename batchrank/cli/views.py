"""Opens what shows a run beside its terminal: the page, metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module

from batchrank.errors import UsageError
from batchrank.live.dashboard import Dashboard, Inspect
from batchrank.live.listening import listening
from batchrank.live.page import load_page
from batchrank.progress.snapshot import Snapshot
from batchrank.spec.address import parse_address
from batchrank.spec.jobspec import JobSpec

Tick = Callable[[Snapshot], None]


@asynccontextmanager
async def views_of(
    spec: JobSpec, inspect: Inspect, say: Callable[[str], None]
) -> AsyncIterator[list[Tick]]:
    """What takes the snapshots of a run of `spec`; open until the context is left.

    Raises UsageError where a port is in use, or a package is missing.
    """
    ticks: list[Tick] = []
    async with AsyncExitStack() as stack:
        if spec.dashboard or spec.dashboard_address is not None:
            address = parse_address(spec.dashboard_address or "0")
            page = await asyncio.to_thread(load_page)
            dashboard = Dashboard(address, inspect, page)
            listens = listening(dashboard.app, address, "--dashboard-address")
            at = await stack.enter_async_context(listens)
            say(f"dashboard at {dashboard.url(at)}")
            ticks.append(dashboard.tick)
        if spec.metrics_port is not None or spec.metrics_textfile is not None:
            await _open_metrics(spec, say, ticks, stack)
        yield ticks


async def _open_metrics(
    spec: JobSpec, say: Callable[[str], None], ticks: list[Tick], stack: AsyncExitStack
) -> None:
    try:
        # Looks at this process as it is loaded, which is no work for the loop.
        await asyncio.to_thread(import_module, "prometheus_client")
    except ModuleNotFoundError as error:
        raise UsageError(
            "metrics need prometheus-client: pip install 'batchrank[metrics]'"
        ) from error
    from batchrank.live.metrics import Scraped, Textfile  # noqa: PLC0415 - an extra

    if spec.metrics_port is not None:
        scraped = Scraped()
        address = parse_address(spec.metrics_port)
        at = await stack.enter_async_context(listening(scraped.app, address, "--metrics-port"))
        say(f"metrics at http://{at}/metrics")
        ticks.append(scraped.tick)
    if spec.metrics_textfile is not None:
        textfile = await stack.enter_async_context(Textfile(spec.metrics_textfile, say))
        ticks.append(textfile.tick)
