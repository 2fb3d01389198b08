"""Runs a job against three servers that fail in every way, and sees that nothing is lost.

    python scripts/chaos_test.py --queries 500 --seed 7

The servers time out, reset connections, answer garbage, are overloaded, die and return by a seeded
schedule. The job has to end by itself with 0, 3 or 4; what it left open is finished afterwards on
servers that are well. No task may end with an exception that nobody reads, and no task, socket or
object that belongs to a query may be left.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import orjson
import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from batchrank.formats.sources.source import Source
from batchrank.running.runner import Runner
from batchrank.spec.jobspec import JobSpec
from scripts.judge import JudgeConfig, JudgeServer

ENDPOINTS = 3
CANDIDATES = 24
CALL_SECONDS = 0.01
TIMEOUT = 0.5
LONGEST_LIFE = 3.0
LONGEST_DEATH = 1.5
MOST_SECONDS = 300
"""A job that runs longer hangs."""
ALLOWED = (0, 3, 4)


@dataclass
class Figures:
    """What was seen."""

    codes: list[int] = field(default_factory=list)
    deaths: int = 0
    calls: int = 0
    faults: int = 0
    retries: int = 0
    rows: int = 0
    failures: list[str] = field(default_factory=list)

    def check(self, holds: bool, failure: str) -> None:
        """Note the failure unless it `holds`."""
        if not holds:
            self.failures.append(failure)

    def line(self) -> str:
        """The figures in one line."""
        return (
            f"{'FAILED' if self.failures else 'passed'}: exit codes {self.codes}, {self.rows} "
            f"rows, {self.calls} calls answered, {self.faults} failed, {self.retries} sent again, "
            f"{self.deaths} deaths of servers"
        )


class Chaos:
    """One server that dies and returns at its address, in a loop of its own."""

    def __init__(self, config: JudgeConfig, random: Random, figures: Figures) -> None:
        self.url = ""
        self._config = config
        self._random = random
        self._figures = figures

    async def live(self, ready: asyncio.Event, over: asyncio.Event) -> None:
        """Live and die by turns until it is `over`."""
        port = 0
        while not over.is_set():
            # Other faults in each life: with the same, a request would meet its own for ever.
            config = replace(self._config, seed=self._random.getrandbits(32))
            async with JudgeServer(config, port=port) as server:
                self.url = server.url
                port = int(server.url.rpartition(":")[2])
                ready.set()
                await _first(over, self._random.uniform(0.3, LONGEST_LIFE))
                statuses = [call.status for call in server.calls]
            self._figures.calls += statuses.count(200)
            self._figures.faults += len(statuses) - statuses.count(200)
            if not over.is_set():
                self._figures.deaths += 1
                await _first(over, self._random.uniform(0.1, LONGEST_DEATH))


async def _first(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def chaos_test(folder: Path, *, queries: int, seed: int) -> Figures:
    """Run the job; see the module."""
    figures = Figures()
    source = folder / "queries.jsonl"
    source.write_bytes(b"".join(_lines(queries)))
    uvloop.run(asyncio.sleep(0))  # what the first loop of a process opens for good
    before = _open_files()
    uvloop.run(_play(folder, source, queries, seed, figures))
    gc.collect()  # a task whose exception nobody read says so when it is collected
    left = _open_files() - before
    figures.check(not left, f"files or sockets are left open: {sorted(left)}")
    return figures


async def _play(folder: Path, source: Path, queries: int, seed: int, figures: Figures) -> None:
    gc.collect()
    before = _alive()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        lambda _, context: figures.failures.append(f"unread: {context.get('message')}: {context}")
    )
    output = folder / "ranked.jsonl"
    async with _chaos(Random(seed), seed, figures) as urls:
        await _run(folder, source, output, urls, figures)
    if figures.codes[-1] == 4:
        async with _chaos(Random(seed), None, figures) as urls:
            await _run(folder, source, output, urls, figures)
    figures.check(all(code in ALLOWED for code in figures.codes), f"exit codes {figures.codes}")
    figures.check(figures.codes[-1] in (0, 3), "the job did not come to its end")
    written = output if output.exists() else output.with_name(f"{output.name}.rejected")
    rows = [orjson.loads(line) for line in written.read_bytes().splitlines()]
    figures.rows = len(rows)
    figures.check([row["qid"] for row in rows] == [f"q{n}" for n in range(queries)], "lost queries")
    for row in rows:
        docids = {document["docid"] for document in row["ranking"]}
        figures.check(len(row["ranking"]) == len(docids) == CANDIDATES, f"{row['qid']} lost some")
    gc.collect()
    await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    figures.check(not left, f"tasks are left: {left}")
    leaked = [name for name, number in (_alive() - before).items() if number >= queries]
    figures.check(not leaked, f"one or more a query are left in memory: {leaked}")


async def _run(folder: Path, source: Path, output: Path, urls: list[str], figures: Figures) -> None:
    spec = JobSpec(
        store=folder / "store.sqlite",
        base_url=tuple(urls),
        window_size=10,
        timeout=TIMEOUT,
        wait_for_server="20s",
        max_fallback=0.2,
    )
    runner = Runner(
        spec,
        Source(str(source)),
        str(output),
        fresh=False,
        retry_fallbacks=False,
        say=lambda text: print(f"  {text}", file=sys.stderr),
        tick=lambda _: None,
    )
    async with asyncio.timeout(MOST_SECONDS):
        report = await runner.run()
    figures.codes.append(report.exit_code)
    figures.retries += report.progress.spent.retries


@asynccontextmanager
async def _chaos(random: Random, seed: int | None, figures: Figures) -> AsyncIterator[list[str]]:
    """The addresses of the servers; without a seed they are well and live on."""
    bad: dict[str, Any] = {}
    if seed is not None:
        kinds = ("500", "503", "429", "reset", "html", "error-200", "hang")
        bad = {"error_rate": 0.05, "errors": kinds, "malformed_rate": 0.03, "retry_after": 0.2}
    with _thread() as loop:
        servers = []
        over, lives = asyncio.Event(), []
        for number in range(ENDPOINTS):
            config = JudgeConfig(
                kind="vllm", slots=2 + number, call_seconds=CALL_SECONDS, sigma=1.0, **bad
            )
            server = Chaos(config, Random(random.random()), figures)
            ready = asyncio.Event()
            lives.append(asyncio.run_coroutine_threadsafe(server.live(ready, over), loop))
            await _in(loop, ready.wait())
            servers.append(server)
        try:
            yield [server.url for server in servers]
        finally:
            loop.call_soon_threadsafe(over.set)
            for life in lives:
                await asyncio.wrap_future(life)


async def _in(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> None:
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


@contextmanager
def _thread() -> Iterator[asyncio.AbstractEventLoop]:
    """A running loop, so that the job's loop holds nothing but the job."""
    loop = uvloop.new_event_loop()  # asyncio's leaves a connection open that came at the very end
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _open_files() -> set[str]:
    """What this process holds open, where the system tells."""
    found = set()
    for entry in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            found.add(str(entry.readlink()))
    return found


def _alive() -> Counter[str]:
    """How many objects of each of batchrank's own classes are alive."""
    kinds = (type(found) for found in gc.get_objects())
    return Counter(kind.__name__ for kind in kinds if str(kind.__module__).startswith("batchrank."))


def _lines(queries: int) -> Iterator[bytes]:
    for query in range(queries):
        candidates = [
            {
                "docid": f"d{place}",
                "doc": {"text": f"Sheet {place} of folder {query}: {place} seeds."},
            }
            for place in range(CANDIDATES)
        ]
        row = {"query": {"qid": f"q{query}", "text": f"seeds {query}"}, "candidates": candidates}
        yield orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def main() -> None:
    """Run the test as asked for on the command line; exit 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = chaos_test(Path(folder), queries=given.queries, seed=given.seed)
    for failure in figures.failures[:20]:
        print(f"chaos_test: {failure}", file=sys.stderr)
    print(figures.line())
    sys.exit(bool(figures.failures))


if __name__ == "__main__":
    main()
