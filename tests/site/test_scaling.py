"""The Kubernetes Job and the Slurm array of docs/scaling.md, with a shell and without a cluster."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.judge import JudgeServer
from tests.cli.running import batchrank
from tests.conftest import ROOT
from tests.waiting import PATIENCE

PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
SHARDS = 8
Night = Callable[[Sequence[str]], None]


def block(language: str, holds: str) -> str:
    """The one code block of the page in this language that holds a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (found,) = [text for text in blocks if holds in text]
    return str(found)


@pytest.fixture
def job() -> Any:
    return yaml.safe_load(block("yaml", "kind: Job"))["spec"]


@pytest.fixture
def night(desk: Path, sample_server: JudgeServer) -> Night:
    """Runs a command line of the page in the folder, with the server that is here."""

    def run(command: Sequence[str]) -> None:
        name, *arguments = (
            re.sub(r"http://127\.0\.0\.1:\d+", sample_server.url, word).replace("/night", str(desk))
            for word in command
        )
        assert name == "batchrank"
        ended = batchrank(*arguments)
        assert ended.code == 0, ended.err

    return run


def in_shell(script: str, folder: Path, exits: int = 0, **variables: object) -> list[list[str]]:
    """Run a script in bash, every program being a stub; the commands that it gave, but `curl`.

    `exits` is the exit code of `srun`.
    """
    stubs = folder / "stubs"
    stubs.mkdir(exist_ok=True)
    log = folder / "log"
    log.write_bytes(b"")
    record = f'printf \'%s\\0\' "${{0##*/}}" "$@" >> {log}; echo >> {log}\n'
    for name in ("srun", "scontrol", "batchrank", "vllm", "curl"):
        code = exits if name == "srun" else 0
        said = "" if name in ("vllm", "curl") else record
        (stubs / name).write_text(f"#!/bin/sh\n{said}exit {code}\n")
        (stubs / name).chmod(0o700)
    ended = subprocess.run(
        ["bash", "-c", script.replace("/night", str(folder))],
        cwd=folder,
        capture_output=True,
        env={
            "PATH": f"{stubs}:{os.environ['PATH']}",
            **{name: str(value) for name, value in variables.items()},
        },
        check=False,
        timeout=PATIENCE,
    )
    assert ended.returncode == exits
    return [line.split("\0")[:-1] for line in log.read_text().splitlines()]


def joined(desk: Path, night: Night, server: JudgeServer) -> bytes:
    """The output once the page's commands for joining ran, which ask for nothing."""
    asked = len(server.calls)
    for command in in_shell(block("bash", "cd /night"), desk):
        night(command)
    assert len(server.calls) == asked
    return (desk / "queries.ranked.jsonl").read_bytes()


def expected(desk: Path, night: Night) -> bytes:
    night(["batchrank", "run", "/night/queries.jsonl", "--store", "/night/whole.sqlite",
           "-o", "/night/whole.jsonl", "--base-url", "http://127.0.0.1:1"])  # fmt: skip
    return (desk / "whole.jsonl").read_bytes()


def test_the_indexed_job_ranks_every_shard(
    job: Any, desk: Path, night: Night, sample_server: JudgeServer
) -> None:
    assert job["completionMode"] == "Indexed"
    assert job["completions"] == SHARDS
    (container,) = job["template"]["spec"]["containers"]
    for index in range(SHARDS):
        command = (*container["command"], *container["args"])
        night([str(word).replace("$(JOB_COMPLETION_INDEX)", str(index)) for word in command])
    assert joined(desk, night, sample_server) == expected(desk, night)


def test_the_indexed_job_gives_up_only_what_no_other_try_mends(job: Any) -> None:
    (rule,) = job["podFailurePolicy"]["rules"]
    assert rule["action"] == "FailIndex"
    assert rule["onExitCodes"]["values"] == [2, 3]
    (container,) = job["template"]["spec"]["containers"]
    assert rule["onExitCodes"]["containerName"] == container["name"]
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in job["template"]["spec"]["volumes"]}


def test_the_array_ranks_every_shard(desk: Path, night: Night, sample_server: JudgeServer) -> None:
    script = block("bash", "#SBATCH")
    assert f"--array=0-{SHARDS - 1}\n" in script
    for index in range(SHARDS):
        (command,) = in_shell(script, desk, SLURM_ARRAY_TASK_ID=index, SLURM_JOB_ID=7)
        assert f"http://127.0.0.1:{8000 + index}" in command
        night(command[1:])
    assert joined(desk, night, sample_server) == expected(desk, night)


@pytest.mark.parametrize(
    ("code", "again"), [(75, True), (4, True), (0, False), (1, False), (3, False)]
)
def test_a_task_that_was_stopped_early_goes_into_the_queue_again(
    code: int, again: bool, tmp_path: Path
) -> None:
    script = block("bash", "#SBATCH")
    commands = in_shell(script, tmp_path, exits=code, SLURM_ARRAY_TASK_ID=3, SLURM_JOB_ID=7)
    asked = [command for command in commands if command[0] == "scontrol"]
    assert asked == ([["scontrol", "requeue", "7"]] if again else [])
