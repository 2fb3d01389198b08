"""The command: files in, an address out, and a clean end."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from scripts.judge import read_knowledge

from .asking import chat, window

SCRIPT = Path(__file__).parents[2] / "scripts" / "judge_server.py"
ROWS: list[dict[str, object]] = [
    {
        "query": {"qid": 1, "text": "late apples"},
        "candidates": [
            {"docid": "a", "doc": {"title": "Early", "text": "An apple for July."}},
            {"docid": "b", "score": 2.5, "text": "An apple for March."},
        ],
    },
    {"query": "plain", "qid": "p", "documents": ["first of all", "second to none"]},
    {
        "query": {"qid": "code", "text": "open a file"},
        "candidates": [{"path": "io.py", "start_line": 3, "content": "def read(): ..."}],
    },
]


@asynccontextmanager
async def running(*flags: str) -> AsyncIterator[str]:
    """The address of a judge server, stopped by SIGTERM at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), *flags, stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode()
        assert line.startswith("listening on http://127.0.0.1:"), line
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        out, errors = await process.communicate()
    assert (process.returncode, out, errors) == (0, b"", b"")


def write_inputs(folder: Path) -> tuple[Path, Path]:
    """A batch input with a torn line, and qrels."""
    rows = [*map(json.dumps, ROWS), '{"query": {"qid"', '{"qid": 1}']
    (folder / "in.jsonl").write_text("\n".join(rows))
    (folder / "qrels.txt").write_text("1 0 a 1\n1 0 b 3\n\np 0 2 1\n")
    return folder / "in.jsonl", folder / "qrels.txt"


async def test_the_command_serves_files_until_it_is_stopped(tmp_path: Path) -> None:
    source, qrels = write_inputs(tmp_path)
    flags = ("--input", str(source), "--gains", str(qrels), "--kind", "llama.cpp")
    limits = ("--slots", "3", "--constraints", "", "--errors", "500,reset", "--malformed", "prose")
    log = tmp_path / "log"
    body = chat(window(["Early\nAn apple for July.", "An apple for March."], "late apples"))
    async with (
        running(*flags, *limits, "--log", str(log)) as url,
        aiohttp.ClientSession(url) as session,
    ):
        async with session.post("/v1/chat/completions", json=body) as response:
            choice = (await response.json())["choices"][0]
        async with session.get("/props") as response:
            props = await response.json()
    assert choice["message"]["content"] == "[2] > [1]"
    assert props["total_slots"] == 3
    assert len(log.read_text().splitlines()) == 1


async def test_without_files_it_judges_any_text() -> None:
    async with running("--seed", "5") as url, aiohttp.ClientSession(url) as session:
        body = chat(window(["one", "two", "three"]))
        async with session.post("/v1/chat/completions", json=body) as response:
            answer = (await response.json())["choices"][0]["message"]["content"]
    assert sorted(answer.split(" > ")) == ["[1]", "[2]", "[3]"]


async def test_wrong_settings_end_it_with_one_line() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), "--error-rate", "2", stdout=PIPE, stderr=PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert errors.decode() == "judge_server: error_rate is a fraction from 0 to 1\n"


def test_every_shape_of_input_is_read(tmp_path: Path) -> None:
    source, qrels = write_inputs(tmp_path)
    knowledge = read_knowledge(gains=qrels, inputs=[source])
    assert knowledge.queries == {"1": "late apples", "p": "plain", "code": "open a file"}
    assert knowledge.documents == {
        "a": ("Early", "An apple for July."),
        "b": ("", "An apple for March."),
        "1": ("", "first of all"),
        "2": ("", "second to none"),
        "io.py:3": ("io.py:3", "def read(): ..."),
    }
    assert knowledge.gains == {"1": {"a": 1.0, "b": 3.0}, "p": {"2": 1.0}}
    assert knowledge.asked["1"] == {"a", "b"}


@pytest.mark.parametrize("line", ["q d 0.5", "q 0 d 0.5", "q Q0 d 7 0.5 run"])
def test_gains_are_scores_qrels_or_a_run(tmp_path: Path, line: str) -> None:
    path = tmp_path / "gains.gz"
    path.write_bytes(gzip.compress(line.encode()))
    assert read_knowledge(gains=path).gains == {"q": {"d": 0.5}}


def test_gains_of_another_shape_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "gains"
    path.write_text("q 0 d 1\nq d\n")
    with pytest.raises(ValueError, match="gains:2 has 2 columns"):
        read_knowledge(gains=path)
