"""An output that would destroy what a command needs is refused before anything is touched."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import pytest

from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Result


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def files(source: Path, shell: Shell) -> Path:
    """A folder with everything that a run reads, and a finished store."""
    folder = source.parent
    assert shell.run(source, "--limit", "1").code == 0
    (folder / "job.toml").write_text("top_k = 3\n")
    template = Path("batchrank/prompts/templates/direct-en.toml")
    (folder / "own.toml").write_bytes(template.read_bytes())
    (folder / "canaries.qrels").write_text("q1 0 q1-d1 1\n")
    (folder / "soft").symlink_to(source)
    os.link(source, folder / "hard")
    return folder


Given = Callable[[Path], Sequence[object]]


@pytest.mark.parametrize(
    ("output", "flags", "said"),
    [
        ("in.jsonl", lambda _: [], "the input"),
        ("soft", lambda _: [], "the input"),
        ("hard", lambda _: [], "the input"),
        ("../{folder}/in.jsonl", lambda _: [], "the input"),
        ("store.sqlite", lambda _: [], "the store"),
        ("store.sqlite-wal", lambda _: [], "the store's store.sqlite-wal"),
        ("store.sqlite-shm", lambda _: [], "the store's"),
        ("store.sqlite.lock", lambda _: [], "the store's"),
        ("store.sqlite.status", lambda _: [], "the store's"),
        ("job.toml", lambda folder: ["--job", folder / "job.toml"], "the job spec"),
        ("own.toml", lambda folder: ["--template", folder / "own.toml"], "the template"),
        (
            "canaries.qrels",
            lambda folder: ["--gate-qrels", folder / "canaries.qrels"],
            "the file of --gate-qrels",
        ),
    ],
)
def test_an_output_that_is_needed_is_refused(
    files: Path, shell: Shell, server: JudgeServer, output: str, flags: Given, said: str
) -> None:
    before, asked = _contents(files), len(server.calls)
    target = files / output.format(folder=files.name)
    _refused(shell.run(files / "in.jsonl", "-o", target, *flags(files)), f" is {said}")
    after = _contents(files)
    # The refusal is told where the runs of the store tell of themselves.
    assert orjson.loads(after.pop("store.sqlite.status"))["exit_code"] == 2
    before.pop("store.sqlite.status")
    assert after == before
    assert len(server.calls) == asked


def test_the_name_of_a_rejected_result_is_not_the_input_either(files: Path, shell: Shell) -> None:
    source = (files / "in.jsonl").rename(files / "out.jsonl.rejected")
    _refused(shell.run(source, "-o", files / "out.jsonl"), " is the input")


def test_no_file_beside_a_store_is_an_input(files: Path, shell: Shell) -> None:
    source = (files / "in.jsonl").rename(files / "store.sqlite.status")
    content = source.read_bytes()
    _refused(shell.run(source, "-o", files / "out.jsonl"), "choose another store")
    assert source.read_bytes() == content


@pytest.mark.parametrize("end", ["", "-wal", ".lock", ".status"])
def test_an_export_does_not_write_to_its_store(files: Path, shell: Shell, end: str) -> None:
    before = _contents(files)
    _refused(shell.look("export", "-o", f"{shell.store}{end}"), " is the store")
    assert _contents(files) == before


def _refused(ended: Result, said: str) -> None:
    assert ended.code == 2, ended.err
    (line,) = ended.err.splitlines()
    assert line.startswith("batchrank: error: ")
    assert said in line
