"""What the benchmarks compare is the same work: bodies, recorded calls, a job that goes on."""

from __future__ import annotations

import asyncio
import json
import sys
from hashlib import blake2b
from pathlib import Path

import pytest

from scripts.bare_client import drive_all, recorded, rendered
from scripts.bench_peers import PEERS, Peer
from scripts.benchmarks.inputs import make_input
from scripts.benchmarks.processes import run, server
from scripts.benchmarks.scale import seconds_to_first_call, stats
from scripts.judge import JudgeConfig, JudgeServer
from tests.cli.running import batchrank, serving, windows


def digest(body: bytes) -> str:
    """As the judge's log has it."""
    return blake2b(body, digest_size=8).hexdigest()


def test_the_bare_client_asks_what_batchrank_asks(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    make_input(source, 3, 40, 100)
    queries = rendered(str(source), "segmented")
    calls = sum(len(bodies) for rounds in queries for bodies in rounds)

    with serving(JudgeServer(JudgeConfig(kind="llama.cpp", context=16384))) as judge:
        store = tmp_path / "store.sqlite"
        assert batchrank("run", source, "--store", store, "--base-url", judge.url).code == 0
        asked = windows(judge)
    first = {digest(body) for rounds in queries for body in rounds[0]}
    assert first <= set(asked)
    # Merges depend on the answers. The preflight's windows come first.
    assert len(set(asked[-calls:])) == calls

    with serving(JudgeServer(JudgeConfig(kind="llama.cpp", context=16384))) as judge:
        asyncio.run(drive_all(judge.url, queries, in_flight=4))
        assert len(windows(judge)) == calls
        assert first <= set(windows(judge))


def test_recorded_calls_are_made_again_as_they_were(tmp_path: Path) -> None:
    source, log = tmp_path / "in.jsonl", tmp_path / "calls.jsonl"
    make_input(source, 5, 12, 100)
    with (
        serving(JudgeServer(JudgeConfig(kind="llama.cpp", context=16384))) as judge,
        server("recording_proxy.py", judge.url, str(log)) as url,
    ):
        store = tmp_path / "store.sqlite"
        assert batchrank("run", source, "--store", store, "--base-url", url).code == 0
        asked = [call.body for call in judge.calls]
        asyncio.run(drive_all(judge.url, recorded(str(log)), in_flight=1))
        again = [call.body for call in judge.calls][len(asked) :]

    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert sorted(again) == sorted(asked)
    assert again == [digest(row["body"].encode()) for row in sorted(rows, key=lambda r: r["time"])]
    assert all(row["status"] == 200 and row["tokens"] > 0 and row["seconds"] > 0 for row in rows)


def test_a_job_stopped_halfway_goes_on_with_its_first_line(tmp_path: Path) -> None:
    make_input(tmp_path / "200.jsonl", 200, 50, 200)

    assert seconds_to_first_call(tmp_path, 200) > 0


def test_the_null_server_tells_windows_from_the_preflight(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    make_input(source, 5, 50, 200)
    with server("null_server.py") as url:
        assert stats(url) == (0, None)
        batchrank("run", source, "--store", tmp_path / "store.sqlite", "--base-url", url)
        seen, first = stats(url)

    assert seen == 5 * 4
    assert first is not None


def test_stand_ins_for_nodes_answer_all_windows_of_a_job(tmp_path: Path) -> None:
    source, target, store = (tmp_path / name for name in ("in.jsonl", "seen.json", "store.sqlite"))
    make_input(source, 5, 50, 200)
    program = [sys.executable, "-m", "scripts.benchmarks.null_nodes", "3", "2", "0.01", str(target)]
    run([*program, "run", str(source), "--store", str(store), "-o", str(tmp_path / "out.jsonl")])
    seen = json.loads(target.read_text())
    assert seen["windows"] == len(seen["ended"]) == 5 * 4
    assert seen["messages"] > 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 5


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_a_peer_that_is_not_there_is_named_with_the_reason(peer: Peer, tmp_path: Path) -> None:
    option = f"--{peer.name.replace('_', '-')}-python"

    assert peer.absent(None) == f"{peer.name}: left out, no {option}"
    assert "No such file" in (peer.absent(tmp_path / "python") or "")
    assert peer.absent(Path(sys.executable)) == f"{peer.name}: left out, {sys.executable} has none"
