"""A job on a Ray cluster gives what it gives on one machine, whatever nodes and driver suffer."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from sqlite3 import connect

import pytest

from batchrank.progress.status import read_status
from batchrank.version import __version__
from scripts.judge import JudgeConfig, JudgeServer, Knowledge
from tests.cli.running import (
    batchrank,
    serving,
    started,
    windows,
    written,
)
from tests.conftest import ROOT
from tests.distributed.cluster import FLYING, SLOTS, THERE, Nodes
from tests.distributed.conftest import SMALL, WINDOWS, on_one_machine
from tests.dl19 import dl19
from tests.waiting import PATIENCE, until

DL19 = 43 * 6
"""The windows of its queries."""
pytestmark = [
    pytest.mark.xdist_group("ray"),  # one cluster for all
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # logs of Ray's own
]


def job(nodes: Nodes, source: Path, *more: object, address: str = "") -> tuple[object, ...]:
    where = ("--engine", "ray", "--ray-address", address or nodes.address, "--base-url", THERE)
    return ("run", source, "--store", source.parent / "store.sqlite", *where, *more)


def test_a_cluster_that_is_not_there_is_said_at_once(nodes: Nodes, source: Path) -> None:
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1"):
        found = batchrank(*job(nodes, source, address=address))
        assert found.code == 4
        assert f"no Ray cluster can be joined at {address}" in found.err
        assert len(found.err.splitlines()) == 1


def test_ray_s_client_is_given_another_try(
    nodes: Nodes, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    tried = []

    def init(**_: object) -> None:
        tried.append(1)
        raise RuntimeError("Starting Ray client server failed.\nSee its logs.")

    monkeypatch.setattr(ray, "init", init)
    found = batchrank(*job(nodes, source, address=nodes.client_address))
    assert found.code == 4
    assert f"no Ray cluster can be joined at {nodes.client_address}: See its logs" in found.err
    assert len(tried) == 3


@pytest.mark.parametrize(
    "address_of",
    [lambda it: it.address, lambda it: it.client_address],
    ids=["ray", "ray's client"],
)
def test_the_output_is_that_of_one_machine(
    nodes: Nodes, source: Path, expected: bytes, address_of: Callable[[Nodes], str]
) -> None:
    before = nodes.asked()
    more = (*SMALL, "--workers-per-node", 2)
    with started(*job(nodes, source, *more, address=address_of(nodes)), cwd=source.parent) as run:
        out, told = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, told
    assert "warning" not in told
    assert "rror" not in told.replace("0 error", "")
    assert out == ""
    assert source.with_suffix(".ranked.jsonl").read_bytes() == expected
    assert (nodes.asked() - before).total() == WINDOWS
    assert all(windows(server) for server in nodes.judges)


def test_nodes_may_die_and_come_and_nothing_is_lost(
    nodes: Nodes, known: Knowledge, shared_data: Path, tmp_path: Path
) -> None:
    source = written(tmp_path / "dl19.jsonl", dl19(shared_data / "dl19"))
    expected = on_one_machine(known, source)
    before = nodes.asked()
    doomed = nodes.judges[1]
    had = len(windows(doomed))
    figures = tmp_path / "figures.prom"
    with started(*job(nodes, source, "--metrics-textfile", figures), cwd=tmp_path) as process:
        until(lambda: len(windows(doomed)) - had >= 20)
        nodes.kill(doomed)
        latest = nodes.add()
        out, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, told
    assert out == ""  # where rankings may go, and Ray would tell of the node
    assert source.with_suffix(".ranked.jsonl").read_bytes() == expected
    assert "has joined" in told
    assert len(windows(latest)) > FLYING, told
    asked = nodes.asked() - before
    assert len(asked) == DL19
    # Only what the node held that died: its answers were not committed.
    again = {body for body, count in asked.items() if count > 1}
    assert asked.total() - DL19 == len(again) <= FLYING
    assert again <= set(windows(doomed)[had:])
    check_what_is_told_by_node(tmp_path / "store.sqlite", figures, doomed, latest)


def check_what_is_told_by_node(
    store: Path, figures: Path, doomed: JudgeServer, latest: JudgeServer
) -> None:
    """See that the status file, which all views show, and the metrics tell nodes apart."""
    snapshot = read_status(store)
    assert snapshot is not None
    by_node = {one.url.partition(" on ")[0]: one for one in snapshot.endpoints}
    assert len(by_node) == 3
    assert by_node[doomed.url].health == "lost"
    assert by_node[latest.url].health == "well"
    assert by_node[latest.url].answered == len(windows(latest))
    assert by_node[latest.url].rate > 0
    lines = figures.read_text().splitlines()
    for server, up in ((doomed, "0.0"), (latest, "1.0")):
        (line,) = (
            line
            for line in lines
            if line.startswith("batchrank_endpoint_up{") and f'"{server.url} on 127.0.0.' in line
        )
        assert line.endswith(f" {up}")


def test_a_job_that_is_stopped_in_any_way_goes_on_by_the_same_command(
    nodes: Nodes, source: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = nodes.asked()

    def done(share: float) -> bool:
        return (nodes.asked() - before).total() >= share * WINDOWS

    same = job(nodes, source, *SMALL)
    with monkeypatch.context() as patched:
        # A day passes as soon as a fifth is done.
        patched.setattr(
            "batchrank.running.pace.monotonic", lambda: time.monotonic() + 86_400 * done(0.2)
        )
        soon = datetime.now().astimezone() + timedelta(hours=6)
        found = batchrank(*same, "--deadline", f"{soon:%H:%M}")
    assert found.code == 75, found.err
    assert "is not enough for another query" in found.err
    with started(*same, cwd=source.parent) as stopped:
        until(lambda: done(0.5))
        stopped.send_signal(signal.SIGTERM)
        _, told = stopped.communicate(timeout=PATIENCE)
    assert stopped.returncode == 75, told
    assert max((nodes.asked() - before).values()) == 1
    with started(*same, cwd=source.parent) as killed:
        until(lambda: done(0.7))
        killed.kill()
    until(lambda: not any(server.stats()["in_flight"] for server in nodes.judges))
    then = nodes.asked()
    with closing(connect(source.parent / "store.sqlite")) as store:
        (kept,) = store.execute("SELECT count(*) FROM answers").fetchone()
    found = batchrank(*same)
    assert found.code == 0, found.err
    assert source.with_suffix(".ranked.jsonl").read_bytes() == expected
    # What was on its way when the driver was killed is asked again, and nothing else.
    assert (nodes.asked() - then).total() == WINDOWS - kept
    assert len(nodes.asked() - before) == WINDOWS


def test_a_node_with_another_batchrank_or_none_is_left_out(nodes: Nodes, source: Path) -> None:
    other, none = source.parent / "other", source.parent / "none"
    package = "batchrank"
    shutil.copytree(ROOT / package, other / package, ignore=shutil.ignore_patterns("__pycache__"))
    (other / package / "version.py").write_text('__version__ = "0.0.1"\n')
    none.mkdir()
    (none / f"{package}.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'batchrank'\")\n"
    )
    servers = [nodes.add(PYTHONPATH=str(folder)) for folder in (other, none)]
    # A process of its own: a driver's workers search its own path for packages first.
    with started(*job(nodes, source, *SMALL, "--limit", 2), cwd=source.parent) as process:
        _, told = process.communicate(timeout=PATIENCE)
    for server in servers:
        nodes.kill(server)
    assert process.returncode == 0, told
    assert f"it has batchrank 0.0.1 and this machine {__version__}: install the same" in told
    assert "it has no batchrank: install this machine's on it" in told
    assert not any(windows(server) for server in servers)


IMPATIENT = """
import batchrank.distributed.cluster as cluster
from batchrank.cli import main
cluster._LOST_SECONDS = 2.0
main()
"""


@pytest.mark.parametrize("what", ["ray's client", "ray", "ray, as the job ends"])
def test_a_cluster_that_is_lost_stops_the_job_which_goes_on_later(
    nodes: Nodes, source: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The last tests, since each ends the cluster: others would need a new one."""
    monkeypatch.setenv("RAY_CLIENT_RECONNECT_GRACE_PERIOD", "1")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # where Ray would look for another
    before = nodes.asked().total()
    share = 1 if "ends" in what else 4
    address = nodes.client_address if "client" in what else nodes.address
    same = map(str, job(nodes, source, *SMALL, address=address))
    with subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, *same],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(lambda: nodes.asked().total() - before >= WINDOWS // share)
        nodes.kill(nodes.judges[0])
        _, told = process.communicate(timeout=PATIENCE)
    store = source.parent / "store.sqlite"
    if process.returncode == 0:  # it had its answers in time
        assert "ends" in what
        assert source.with_suffix(".ranked.jsonl").read_bytes() == expected
    else:
        assert process.returncode == 4, told
        assert "stopped: the Ray cluster is lost" in told
        seen = batchrank("status", "--store", store).out.decode()
        assert "the Ray cluster is lost" in seen
    for line in told.splitlines():
        assert line.startswith("batchrank: "), told
    with serving(JudgeServer(JudgeConfig(kind="llama.cpp", slots=SLOTS), nodes.known)) as server:
        found = batchrank("run", source, "--store", store, *SMALL, "--base-url", server.url)
        assert found.code == 0, found.err
        assert source.with_suffix(".ranked.jsonl").read_bytes() == expected
        assert len(windows(server)) < WINDOWS
