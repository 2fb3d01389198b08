"""vLLM as the embedded backend: which flags it gets, how it ends. A stand-in takes its place."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import aiohttp
import pytest

from batchrank.backends.embedded.identity import fingerprint, identity_of
from batchrank.backends.embedded.runtimes import Load
from batchrank.backends.embedded.server import EmbeddedServer
from batchrank.backends.embedded.vllm_program import arguments
from batchrank.errors import NoServerError, UsageError
from tests.cli.running import batchrank, requests, written
from tests.embedded.standin import model_folder, processes, vllm
from tests.waiting import until

ROWS = requests(queries=3, candidates=12)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return model_folder(tmp_path / "Small-Instruct")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in, in PATH; the log of its calls."""
    log = vllm(tmp_path / "vllm", ROWS)
    monkeypatch.setenv("PATH", str(log.parent / "bin"), prepend=os.pathsep)
    return log


def test_a_job_is_ranked(folder: Path, program: Path, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", ROWS)
    where = ("--store", tmp_path / "s.sqlite", "--backend", "embedded", "--model-path", folder)
    found = batchrank("run", source, "--window-size", 6, *where)
    assert found.code == 0, found.err
    assert '"model":"Small-Instruct"' in (tmp_path / "in.ranked.jsonl").read_text()
    assert program.exists()
    assert not processes(str(folder))


def test_flags_follow_the_model_and_the_gpus(tmp_path: Path) -> None:
    plain = model_folder(tmp_path / "plain", longest=8192)
    assert arguments(plain, 8000, 3072, 0) == [
        "serve",
        str(plain),
        "--host=127.0.0.1",
        "--port=8000",
        "--served-model-name=plain",
        "--max-model-len=3072",
        "--uvicorn-log-level=warning",
    ]
    assert "--max-model-len=8192" in arguments(plain, 8000, 9000, 1)
    assert arguments(plain, 1, 1, 4)[-1] == "--tensor-parallel-size=4"
    assert arguments(plain, 1, 1, 0.25)[-1] == "--gpu-memory-utilization=0.225"
    (plain / "config.json").write_text('{"text_config": {"max_position_embeddings": 512}}')
    assert "--max-model-len=512" in arguments(plain, 8000, 9000, 1)
    (plain / "config.json").write_text("{}")
    assert "--max-model-len=9000" in arguments(plain, 8000, 9000, 1)


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("victim", ["vllm_program", "judge_server", None])
async def test_no_process_is_left(folder: Path, tmp_path: Path, victim: str | None) -> None:
    ours = f"{tmp_path}/"
    async with EmbeddedServer() as server:
        url = await server.start(folder, Load(2048))
        async with aiohttp.ClientSession() as session, session.get(f"{url}/v1/models") as answer:
            assert (await answer.json())["data"][0]["id"] == "Small-Instruct"
        assert processes(ours)
        if victim is not None:
            os.kill(min(processes(victim, ours)), signal.SIGKILL)
            assert await server.ended() == "vLLM has ended: it was ended by SIGKILL"
    await asyncio.to_thread(until, lambda: not processes(ours))


@pytest.mark.usefixtures("program")
async def test_a_failure_is_told_by_its_first_cause(folder: Path) -> None:
    (folder / "broken").touch()
    with pytest.raises(NoServerError, match=r"vLLM can't load .*: ValueError: Free memory on dev"):
        await EmbeddedServer().start(folder, Load(2048))


async def test_without_vllm_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="pip install vllm"):
        await EmbeddedServer().start(folder, Load(2048))


async def test_the_fingerprint_of_a_folder_is_that_of_its_names_and_files(tmp_path: Path) -> None:
    one, other = model_folder(tmp_path / "one"), model_folder(tmp_path / "other")
    seen = await fingerprint(one)
    assert await identity_of(one) == f"folder sha256:{seen}"
    (other / "README.md").write_text("how to use it")
    (other / ".cache").mkdir()
    (other / ".cache" / "when.json").write_text("today")
    assert await fingerprint(other) == seen
    (other / "model.safetensors").write_bytes(b"other weights")
    assert await fingerprint(other) != seen
    (other / "model.safetensors").rename(other / "model-1.safetensors")
    (other / "model-1.safetensors").write_bytes(b"weights")
    assert await fingerprint(other) != seen
