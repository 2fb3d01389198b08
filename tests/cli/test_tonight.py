"""The input and the day of a night, from a job spec or the command line."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.running import Row, rows_of, written


def test_a_job_spec_can_be_the_whole_command(tmp_path: Path, shell: Shell, rows: list[Row]) -> None:
    written(tmp_path / "log-2026-03-04.jsonl", rows)
    job = tmp_path / "night.toml"
    job.write_text(
        f'input = "{tmp_path}/log-{{date}}.jsonl"\noutput = "{tmp_path}/out-{{date}}.jsonl"\n'
    )
    ran = shell.run("--job", job, "--date", "2026-03-04")
    assert ran.code == 0, ran.err
    assert len(rows_of((tmp_path / "out-2026-03-04.jsonl").read_bytes())) == len(rows)

    other = shell.run("--job", job, "--date", "2026-03-03")
    assert other.code == 2
    assert "log-2026-03-03.jsonl" in other.err

    today = shell.run("--job", job)
    assert f"log-{datetime.now().astimezone():%Y-%m-%d}.jsonl" in today.err


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_no_input_is_said(shell: Shell, more: tuple[str, ...]) -> None:
    refused = shell.run(*more)
    assert refused.code == 2
    assert "no input: name a file of queries" in refused.err
