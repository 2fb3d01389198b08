"""Measures a job on a Ray cluster beside the same job on one machine, and where a driver is full.

    python -m scripts.bench_ray                # some 12 minutes, on a quiet machine
    python -m scripts.bench_ray --size 0.1     # a tenth of the queries: 5 minutes
    python -m scripts.bench_ray --part null    # one part alone

Part `cluster`: two judges with 32 slots of 200 ms, each beside a node of a cluster on this machine:
the share of the slots' time that is used, and the driver's CPU a window, against the same judges
named by two --base-url. Part `null`: up to 1,000 nodes that are stand-ins in the driver's process,
and what messages of Ray cost beside them: how many windows a second fill a driver.
Exit code 1 where a target was missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
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
from scripts.benchmarks.figures import Row, figure, missed, table
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
STAND_INS = ((2, 0.2), (10, 0.2), (30, 2.0), (100, 2.0), (300, 2.0), (1000, 2.0))
"""Nodes, and the seconds of a call at each."""
MOST_QUERIES = 4000
CLIENT = "ray, by its client"


@dataclass(frozen=True, slots=True)
class Found:
    """Windows a second between the first and the last, and CPU seconds of the driver."""

    windows: int
    rate: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Seen:
    """Windows a second at the nodes; CPU seconds and messages, either way, of a window."""

    rate: float
    cpu: float
    messages: float


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
def cluster(ports: Sequence[str]) -> Iterator[tuple[str, str]]:
    """A cluster of one node a port, which is its variable JUDGE_PORT.

    Yields its address, and that for Ray's client.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # or what serves Ray's client fails at times
    made = import_module("ray.cluster_utils").Cluster()  # an extra
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        client = free.getsockname()[1]
    head = {"include_dashboard": False, "ray_client_server_port": client}
    try:
        for port in ports:
            size = {"num_cpus": 0, "object_store_memory": 200_000_000}
            made.add_node(env_vars={"JUDGE_PORT": port}, **size, **head)
            head = {}
        yield str(made.address), f"ray://127.0.0.1:{client}"
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


def beside_one_machine(folder: Path, size: float) -> Row:
    """All clients in turn, with few queries and with all: more of them cost the CPU a window."""
    logs = [folder / f"{number}.log" for number in range(2)]
    found: dict[tuple[str, str], Found] = {}
    whole = max(round(CASE.queries * size), CASE.all_slots)
    with ExitStack() as stack:
        urls = [stack.enter_context(judge(CASE, SLOTS, log)) for log in logs]
        addresses = stack.enter_context(cluster([url.rpartition(":")[2] for url in urls]))
        there = {"one machine": [part for url in urls for part in ("--base-url", url)]}
        for name, address in zip(("ray", CLIENT), addresses, strict=True):
            there[name] = [
                *("--engine", "ray", "--ray-address", address),
                *("--base-url", "http://127.0.0.1:${JUDGE_PORT}"),
            ]
        for amount, count in (("few", whole // 4), ("all", whole)):
            source = folder / f"{count}.jsonl"
            make_input(source, count, CANDIDATES, TEXT_BYTES)
            for name, where in there.items():
                store = str(folder / f"{name}-{amount}.sqlite")
                command = batchrank("run", str(source), "--store", store, "-o", os.devnull)
                found[name, amount] = measured([*command, *where], logs, count)
    most = CASE.all_slots / CASE.call_seconds
    cpu = {}
    for name in there:
        few, every = found[name, "few"], found[name, "all"]
        cpu[name] = (every.cpu - few.cpu) / (every.windows - few.windows)
    figures = [figure("ray: share of the slots' time used", found["ray", "all"].rate / most,
                      least=CASE.use),
               figure("ray: driver CPU a window / one machine's", cpu["ray"] / cpu["one machine"],
                      most=CPU)]  # fmt: skip
    figures += [
        figure(f"{name}: share of the slots' time", found[name, "all"].rate / most)
        for name in ("one machine", CLIENT)
    ]
    figures += [figure(f"{name}: CPU a window, ms", cpu[name] * 1e3) for name in there]
    return Row("cluster", f"2 nodes × {SLOTS} slots of 0.2 s, {whole} queries", tuple(figures))


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
        print(f"a message of {size:2} and its answer: {told}", file=sys.stderr)
    await asyncio.to_thread(ray.shutdown)
    each = max(0.0, (costs[1] - costs[0]) / (ENOUGH - 1))
    return costs[0] - each, each


def stand_ins(folder: Path, nodes: int, seconds: float, size: float) -> Seen:
    """A job on so many nodes that are in the driver's own process."""
    most = max(200, round(MOST_QUERIES * size))
    whole = min(most, max(200, nodes * SLOTS // 2))
    found = []
    for count in (whole // 4, whole):
        source, target = folder / f"{count}.jsonl", folder / "figures.json"
        make_input(source, count, CANDIDATES, TEXT_BYTES)
        store = folder / f"{nodes}-{count}.sqlite"
        job = ["run", str(source), "--store", str(store), "-o", os.devnull]
        run([
            *(sys.executable, "-m", "scripts.benchmarks.null_nodes"),
            *(str(nodes), str(SLOTS), str(seconds), str(target), *job),
        ])  # fmt: skip
        found.append(orjson.loads(target.read_bytes()))
    few, every = found
    windows = every["windows"] - few["windows"]
    return Seen(
        rate_of(sorted(every["ended"])),
        (every["cpu"] - few["cpu"]) / windows,
        max(0.0, (every["messages"] - few["messages"]) / windows),
    )


def without_a_cluster(folder: Path, size: float) -> Row:
    """What fills a driver: its own work by stand-ins, and Ray's part by what messages cost."""
    with cluster(["0"]) as (address, _):
        message, each = asyncio.run(cost_of_messages(address))
    figures = []
    full = 0.0
    for nodes, seconds in STAND_INS:
        seen = stand_ins(folder, nodes, seconds, size)
        # A message and its answer were measured as one, and are counted as two.
        cost = seen.cpu + seen.messages / 2 * message + each
        offered = nodes * SLOTS / seconds
        name = f"{nodes:,} nodes × {SLOTS} of {seconds:g} s"
        figures += [
            figure(f"{name}: offered windows/s", offered),
            figure(f"{name}: windows/s without Ray", seen.rate),
            figure(f"{name}: driver CPU a window without Ray, ms", seen.cpu * 1e3),
            figure(f"{name}: messages a window", seen.messages),
            figure(f"{name}: driver is full at windows/s", 1 / cost),
        ]
        if nodes * SLOTS / seconds <= 1 / cost:
            full = max(full, offered)
    said = f"the most that was offered and one driver can take: {full:,.0f} windows/s; "
    return Row("null", said + "beyond what fills it: --shard", tuple(figures))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--size", type=float, default=1.0, help="share of the queries")
    parser.add_argument("--part", choices=("cluster", "null"), action="append", help="default: all")
    given = parser.parse_args()
    parts = {"cluster": beside_one_machine, "null": without_a_cluster}
    rows = []
    for part in given.part or parts:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(parts[part](Path(folder), given.size))
        print(f"{part}: {rows[-1].about}", file=sys.stderr)
    print(table(rows))
    if failures := missed(rows):
        sys.exit(f"missed: {', '.join(failures)}")


if __name__ == "__main__":
    main()
