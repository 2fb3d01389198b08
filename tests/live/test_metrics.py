"""Metrics: what Prometheus scrapes, what node_exporter reads, what the docs say of them."""

from __future__ import annotations

import asyncio
import re
import socket
from dataclasses import replace
from pathlib import Path

import aiohttp
import orjson
import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as open_metric_families,
)
from prometheus_client.parser import text_string_to_metric_families

from batchrank.cli.views import views_of
from batchrank.live.metrics import Textfile
from batchrank.live.prometheus import registry_of
from batchrank.progress.snapshot import Snapshot, Step
from batchrank.spec.address import Address, parse_address
from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, judge, requests, serving, written
from tests.conftest import ROOT
from tests.live.running import runner_of, spec_of
from tests.snapshots import GPU1, SNAPSHOT

Figures = dict[tuple[str, frozenset[str]], float]
STEPS = (Step("publish", 0, "generation 1", 70.0), Step("report", 1, "failed: full", 80.0))
ENDED = replace(SNAPSHOT, state="ended", exit_code=0, steps=STEPS)
NAME = re.compile(r"\bbatchrank_[a-z_]+")


def figures(text: str) -> Figures:
    """Every sample by its name and its label values but the store's."""
    found: Figures = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = frozenset(value for name, value in sample.labels.items() if name != "store")
            assert (sample.name, labels) not in found
            assert sample.labels["store"]
            found[sample.name, labels] = sample.value
    return found


def drawn(snapshot: Snapshot) -> Figures:
    return figures(generate_latest(registry_of(snapshot)).decode())


def of(found: Figures, name: str, *labels: str) -> float | None:
    return found.get((f"batchrank_{name}", frozenset(labels)))


def names(snapshot: Snapshot) -> set[str]:
    """Of the metrics as they are asked for in a query, a histogram's without its suffixes."""
    return {
        re.sub(r"(duration_seconds)_(bucket|sum|count)", r"\1", name) for name, _ in drawn(snapshot)
    }


def test_every_number_of_a_snapshot_is_there() -> None:
    found = drawn(SNAPSHOT)
    assert of(found, "running") == 1
    assert of(found, "exit_code") is None
    assert of(found, "by_deadline_ratio") == 0.85
    assert of(found, "windows_total", "ok", GPU1) == 600
    assert of(found, "windows_total", "ok", "store") == 300
    assert of(found, "fallback_ratio") == 0.05
    assert of(found, "calls_total", GPU1, "failed") == 3
    assert of(found, "call_duration_seconds_count", GPU1) == 700
    assert of(found, "call_duration_seconds_bucket", GPU1, "0.25") == 300
    assert of(found, "call_duration_seconds_sum", GPU1) == 210
    assert of(found, "endpoint_up", GPU1) == 1
    assert of(found, "endpoint_up", "http://gpu2:8000") == 0
    assert of(found, "gate_passed", "max_failed") == 1
    assert of(found, "gate_passed", "gate_qrels") is None


def test_an_end_is_told() -> None:
    found = drawn(ENDED)
    assert of(found, "running") == 0
    assert of(found, "exit_code") == 0
    assert of(found, "last_success_timestamp_seconds") == ENDED.written
    failed = drawn(replace(ENDED, exit_code=4))
    assert of(failed, "exit_code") == 4
    assert of(failed, "last_success_timestamp_seconds") is None


def test_steps_after_a_run_are_told() -> None:
    publishing = drawn(replace(SNAPSHOT, state="publishing"))
    assert of(publishing, "running") == of(publishing, "step_running", "publish") == 1
    assert of(publishing, "step_running", "report") == 0
    assert of(publishing, "step_exit_code", "publish") is None
    found = drawn(ENDED)
    assert of(found, "step_exit_code", "publish") == 0
    assert of(found, "step_exit_code", "report") == 1
    assert of(found, "last_publication_timestamp_seconds") == 70.0
    failed = replace(ENDED, steps=(Step("publish", 75, "failed: gone", 70.0),))
    assert of(drawn(failed), "last_publication_timestamp_seconds") is None


def test_the_docs_list_every_metric_and_no_other() -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `batchrank_")]
    assert set(NAME.findall(" ".join(rows))) == names(SNAPSHOT) | names(ENDED)


def test_alerts_are_about_metrics_that_exist() -> None:
    rules = (ROOT / "docs" / "batchrank.rules.yml").read_text()
    expressions = re.findall(r"expr:(.*?)\n +(?:for|labels):", rules, re.DOTALL)
    assert len(expressions) == rules.count("- alert:")
    asked = set(NAME.findall(" ".join(expressions)))
    known = {name for name, _ in drawn(SNAPSHOT)} | names(ENDED)
    assert asked <= known
    assert len(asked) > 8


async def no_query(qid: str) -> list[dict[str, object]]:
    raise AssertionError(qid)


async def test_a_run_is_scraped(tmp_path: Path) -> None:
    rows = requests(queries=5, candidates=12)
    seen: list[Snapshot] = []
    said: list[str] = []
    async with judge(rows) as server:
        spec = spec_of(tmp_path, server.url, metrics_port=0)
        views = views_of(spec, no_query, said.append)
        async with views as ticks, aiohttp.ClientSession() as client:
            (line,) = said
            url = line.removeprefix("metrics at ")
            assert url.startswith("http://127.0.0.1:")
            early = await client.get(url)
            assert early.status == 503
            await runner_of(spec, rows, seen, *ticks).run()
            response = await client.get(url)
            found = figures(await response.text())
            accepts = {"Accept": "application/openmetrics-text; version=1.0.0"}
            response = await client.get(url, headers=accepts)
            assert response.content_type == "application/openmetrics-text"
            assert list(open_metric_families(await response.text()))  # type: ignore[no-untyped-call]
    assert of(found, "queries_total", "ok") == 5
    assert of(found, "windows_total", "ok", server.url) == 15
    assert of(found, "call_duration_seconds_count", server.url) == 15
    assert of(found, "exit_code") == 0


async def test_a_file_is_replaced_every_quarter_of_a_minute_and_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "night.prom"
    found: list[float | None] = []

    def told() -> float | None:
        return of(figures(path.read_text()), "duration_seconds")

    async with Textfile(path, print) as textfile:
        for second in range(40):
            textfile.tick(replace(SNAPSHOT, seconds=float(second)))
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
            found.append(told())
    assert found == [0.0] * 15 + [15.0] * 15 + [30.0] * 10
    assert told() == 39


async def test_a_file_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    folder = tmp_path / "metrics"
    async with Textfile(folder / "night.prom", said.append) as textfile:
        textfile.tick(SNAPSHOT)
    async with Textfile(folder / "night.prom", said.append) as textfile:
        textfile.tick(SNAPSHOT)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        textfile.tick(replace(SNAPSHOT, seconds=99.0))
    assert len(said) == 2
    assert "night.prom' can't be written" in said[0]


def test_a_failed_night_does_not_forget_the_last_good_one(shell: Shell, source: Path) -> None:
    path = shell.folder / "night.prom"
    good = shell.run(source, "--metrics-textfile", path)
    assert good.code == 0, good.err
    success = of(figures(path.read_text()), "last_success_timestamp_seconds")
    assert success is not None
    written(source, [*requests(queries=3, candidates=12), b"{torn"])
    assert shell.run(source, "--metrics-textfile", path).code == 3
    found = figures(path.read_text())
    assert of(found, "exit_code") == 3
    assert of(found, "last_success_timestamp_seconds") == success
    path.write_bytes(b"\xff no metrics {")
    assert shell.run(source, "--metrics-textfile", path).code == 3
    assert of(figures(path.read_text()), "last_success_timestamp_seconds") is None


def test_a_port_in_use_is_refused_before_anything_is_sent(
    shell: Shell, server: JudgeServer, source: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = shell.run(source, "--metrics-port", port)
    assert refused.code == 2
    assert f"--metrics-port 127.0.0.1:{port}: the port is in use; choose another" in refused.err
    assert server.calls == []
    assert not shell.store.exists()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("--metrics-port=192.0.2.1:0", "no such address"),
        ("--metrics-port=70000", "write HOST:PORT"),
        ("--metrics-textfile=night.txt", "must end in .prom"),
        ("--metrics-textfile=/nowhere/night.prom", "create its folder"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(
    shell: Shell, server: JudgeServer, source: Path, given: str, why: str
) -> None:
    refused = shell.run(source, given)
    assert refused.code == 2
    assert why in refused.err
    assert server.calls == []


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9464", Address("127.0.0.1", 9464)),
        ("0.0.0.0:80", Address("0.0.0.0", 80)),
        ("[::1]:0", Address("::1", 0)),
        ("gpu1:9464", Address("gpu1", 9464)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address
    assert address.is_loopback == (address.host in ("127.0.0.1", "::1"))


@pytest.mark.parametrize("text", ["", ":80", "host:", "host:x", "::1:80", "1:70000", "-1", "²"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|brackets"):
        parse_address(text)


def test_a_summary_stands_beside_the_output(shell: Shell, source: Path, rows: list[Row]) -> None:
    summary = shell.folder / "in.ranked.jsonl.summary.json"
    said = shell.run(source, "--json").json
    found = orjson.loads(summary.read_bytes())
    assert found.items() >= said.items()
    assert found["started"] < found["ended"]
    assert found["settings"]["identity"]
    written(source, [*rows, b"{torn"])
    shell.run(source)
    assert orjson.loads(summary.read_bytes())["exit_code"] == 3
    with serving(judge(rows)) as gone:
        url = gone.url
    assert Shell(shell.folder, url).run(source, "--depth", "5").code == 4
    failed = orjson.loads(summary.read_bytes())
    assert failed["exit_code"] == 4
    assert url in failed["reasons"][0]


def test_no_summary_where_the_output_is_a_pipe(shell: Shell, source: Path) -> None:
    before = set(shell.folder.iterdir())
    assert shell.run(source, "-o", "-").code == 0
    assert shell.run(source, "-o", "/dev/null").code == 0
    assert {path.name for path in set(shell.folder.iterdir()) - before} <= {
        f"store.sqlite{end}" for end in ("", ".lock", ".status")
    }
