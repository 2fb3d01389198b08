"""Measures a job on a Ray cluster beside the same job on one machine, and where a driver is full.

    python -m scripts.bench_ray        # some 3 minutes; --size 0.3 for a third of the queries

Two judges with 32 slots of 200 ms, each beside a node of a cluster on this machine: the share of
the slots' time that is used, and the driver's CPU a window, against the same judges named by two
--base-url. Then what a message to a worker costs the driver, with workers that answer at once, and
from both by arithmetic the load of a driver of up to 1,000 nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from batchrank.distributed.relay import ENOUGH, Reply, Taken, Wanted
from scripts.benchmarks.ideal import rate_of
from scripts.benchmarks.inputs import make_input
from scripts.benchmarks.processes import batchrank, run
from scripts.benchmarks.slots import CANDIDATES, TEXT_BYTES, Case, judge

SLOTS = 32
CASE = Case((SLOTS, SLOTS), 0.2, use=0.95, queries=600)
CPU = 2.5
"""Times the CPU a window on one machine."""
MESSAGES = 1500
BODY = b"x" * 16_000
"""A request of 16 KB, as windows of 20 documents make."""
REPLY = b"y" * 400
NODES = (2, 10, 30, 100, 300, 1000)
PAUSE = 0.05
"""Of a call's time: how long replies wait for others at a node, at least."""
QUEUED = SLOTS // 4
"""Calls that wait in a node's server: so many may come in one message and no slot is idle."""


@dataclass(frozen=True, slots=True)
class Found:
    """Windows a second between the first and the last, and CPU seconds of the driver."""

    windows: int
    rate: float
    cpu: float


class Null:
    """A worker that has an answer to everything at once."""

    def __init__(self) -> None:
        self._replies: list[Reply] = []
        self._some = asyncio.Event()

    async def put(self, wanted: Sequence[Wanted]) -> None:
        """See `Relay.put`."""
        self._replies += [Reply(one.number, REPLY, None) for one in wanted]
        self._some.set()

    async def take(self) -> Taken:
        """See `Relay.take`."""
        await self._some.wait()
        replies, self._replies = self._replies, []
        self._some.clear()
        return Taken(replies, 0, 0)


@contextmanager
def cluster(ports: Sequence[str]) -> Iterator[str]:
    """A cluster of one node a port, which is its variable JUDGE_PORT; yields its address."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = import_module("ray.cluster_utils").Cluster()  # an extra
    try:
        for port in ports:
            size = {"num_cpus": 0, "object_store_memory": 200_000_000}
            made.add_node(env_vars={"JUDGE_PORT": port}, include_dashboard=False, **size)
        yield str(made.address)
    finally:
        made.shutdown()


def measured(command: list[str], logs: Sequence[Path], queries: int) -> Found:
    """Run a command against the judges that write `logs`."""
    before = [len(log.read_bytes()) for log in logs]
    used = run(command)
    calls = [
        orjson.loads(line)
        for log, start in zip(logs, before, strict=True)
        for line in log.read_bytes()[start:].splitlines()
    ]
    windows = [call for call in calls if call["purpose"] == "window" and call["status"] == 200]
    if len(windows) < (expected := CASE.calls(queries)):
        raise SystemExit(f"{len(windows)} of {expected} windows answered")
    ended = sorted(call["time"] + call["seconds"] for call in windows)[-expected:]
    return Found(expected, rate_of(ended), used.cpu)


def beside_one_machine(folder: Path, size: float) -> dict[str, float]:
    """Both clients in turn; CPU seconds a window of each, by name."""
    logs = [folder / f"{number}.log" for number in range(2)]
    found: dict[tuple[str, str], Found] = {}
    with ExitStack() as stack:
        urls = [stack.enter_context(judge(CASE, SLOTS, log)) for log in logs]
        address = stack.enter_context(cluster([url.rpartition(":")[2] for url in urls]))
        there = {
            "one machine": [part for url in urls for part in ("--base-url", url)],
            "ray": [
                *("--engine", "ray", "--ray-address", address),
                *("--base-url", "http://127.0.0.1:${JUDGE_PORT}"),
            ],
        }
        for amount, share in (("few", 0.25), ("all", 1.0)):
            count = round(CASE.queries * size * share)
            source = folder / f"{count}.jsonl"
            make_input(source, count, CANDIDATES, TEXT_BYTES)
            for name, where in there.items():
                store = str(folder / f"{name}-{amount}.sqlite")
                command = batchrank("run", str(source), "--store", store, "-o", os.devnull)
                found[name, amount] = measured([*command, *where], logs, count)
    most = CASE.all_slots / CASE.call_seconds
    cpu = {}
    for name in there:
        few, whole = found[name, "few"], found[name, "all"]
        cpu[name] = (whole.cpu - few.cpu) / (whole.windows - few.windows)
        print(f"{name:12} slot use {whole.rate / most:.3f}   CPU a window {cpu[name] * 1e3:.3f} ms")
    ratio = cpu["ray"] / cpu["one machine"]
    use = found["ray", "all"].rate / most
    print(f"slot use     {use:.3f}, target ≥ {CASE.use}: {_verdict(passed=use >= (CASE.use or 0))}")
    print(f"CPU ratio    {ratio:.2f}, target ≤ {CPU}: {_verdict(passed=ratio <= CPU)}")
    return cpu


def _verdict(*, passed: bool) -> str:
    return "pass" if passed else "FAIL"


async def cost_of_messages(address: str) -> tuple[float, float]:
    """CPU seconds of the driver for a message there and back, and for each request in it."""
    ray: Any = import_module("ray")  # an extra

    quiet = {"log_to_driver": False, "logging_level": "critical"}
    await asyncio.to_thread(ray.init, address=address, **quiet)
    worker = ray.remote(Null).options(num_cpus=0).remote()
    costs = []
    for size in (1, ENOUGH):
        message = [Wanted(number, "POST", "/completions", BODY, 1.0) for number in range(size)]
        worker.put.remote(message)
        await worker.take.remote()  # by now it has started
        began, cpu = time.perf_counter(), time.process_time()
        count = MESSAGES // size + 100
        for _ in range(count):
            worker.put.remote(message)
            await worker.take.remote()
        costs.append((time.process_time() - cpu) / count)
        wall = (time.perf_counter() - began) / count
        told = f"driver CPU {costs[-1] * 1e3:.3f} ms, round trip {wall * 1e3:.2f} ms"
        print(f"a message of {size:2}: {told}")
    await asyncio.to_thread(ray.shutdown)
    each = max(0.0, (costs[1] - costs[0]) / (ENOUGH - 1))
    return costs[0] - each, each


def by_arithmetic(cpu: dict[str, float], message: float, each: float) -> None:
    """Print the driver's load by the number of nodes.

    A driver that is busy takes replies more seldom, so that a message holds more of them: between
    those that come in a pause and those that the servers' queues make up for.
    """
    rate = SLOTS / CASE.call_seconds
    # What a window costs whatever the messages: all but what was measured of those on two nodes.
    own = max(0.0, cpu["ray"] - each - message / max(1.0, rate * PAUSE * CASE.call_seconds))
    at_ease = own + each + message / max(1.0, SLOTS * PAUSE)
    busy = own + each + message / QUEUED
    print("nodes   windows/s of 200 ms   cores at ease   busy   windows/s of 2 s   at ease   busy")
    for nodes in NODES:
        loads = [
            f"{all_:10,.0f} {all_ * at_ease:10.2f} {all_ * busy:10.2f}"
            for all_ in (nodes * SLOTS / CASE.call_seconds, nodes * SLOTS / 2.0)
        ]
        print(f"{nodes:5} {'   '.join(loads)}")
    full = 1 / busy
    print(
        f"one core is full at {full:,.0f} windows/s: {full * CASE.call_seconds / SLOTS:,.0f} nodes "
        f"with {SLOTS} slots of {CASE.call_seconds:g} s, {full * 2 / SLOTS:,.0f} of 2 s; beyond "
        "that: --shard"
    )


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--size", type=float, default=1.0, help="share of the queries")
    size = parser.parse_args().size
    with tempfile.TemporaryDirectory() as folder:
        cpu = beside_one_machine(Path(folder), size)
    with cluster(["0"]) as address:
        message, each = asyncio.run(cost_of_messages(address))
    by_arithmetic(cpu, message, each)


if __name__ == "__main__":
    main()
