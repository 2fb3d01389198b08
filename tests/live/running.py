"""Runs jobs of a judge in this loop, with their live views open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from batchrank.formats.sources.source import Source
from batchrank.progress.snapshot import Snapshot
from batchrank.running.runner import Runner
from batchrank.spec.jobspec import JobSpec
from tests.cli.running import Row, written


def spec_of(folder: Path, url: str, **settings: Any) -> JobSpec:
    """A job in windows of six, with a store in `folder`."""
    given = {"store": folder / "store.sqlite", "base_url": url, "window_size": 6}
    return JobSpec.model_validate({**given, **settings})


def runner_of(spec: JobSpec, rows: list[Row], seen: list[Snapshot], *ticks: Any) -> Runner:
    """A run of `spec` over `rows`; its snapshots go to `seen` and to each of `ticks`."""
    folder = spec.store.parent

    def tick(snapshot: Snapshot) -> None:
        seen.append(snapshot)
        for one in ticks:
            one(snapshot)

    source = written(folder / "in.jsonl", rows)
    output = str(folder / "out.jsonl")
    return Runner(spec, Source(str(source)), output, fresh=False, say=lambda text: None, tick=tick)
