"""A model whose process dies is loaded again, and the job goes on as if nothing had been."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread

import orjson
import pytest

from batchrank.backends.embedded.runtimes import Load
from batchrank.backends.embedded.transport import PAUSES, EmbeddedTransport
from batchrank.errors import FatalServerError, UnavailableError
from tests.cli.running import batchrank, requests, written
from tests.embedded.standin import model_folder, processes, vllm, windows
from tests.waiting import PATIENCE, until

ROWS = requests(queries=12, candidates=12)
BODY = orjson.dumps({"messages": [{"role": "user", "content": "Hello."}], "max_tokens": 1})
PAUSE = 0.1


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "batchrank.backends.embedded.transport.PAUSES", tuple(PAUSE for _ in PAUSES)
    )


def kill(*words: str) -> None:
    for process in processes(*words):
        os.kill(process, signal.SIGKILL)


@asynccontextmanager
async def loaded(model: Path) -> AsyncIterator[EmbeddedTransport]:
    transport = EmbeddedTransport(model, Load(512, threads=1))
    await transport.start()
    try:
        yield transport
    finally:
        await transport.close()


async def post(transport: EmbeddedTransport) -> bytes:
    return await transport.post("/v1/chat/completions", BODY, 60)


async def eventually(transport: EmbeddedTransport) -> tuple[bytes, list[UnavailableError]]:
    """The next answer, and what was said in its place until then."""
    said: list[UnavailableError] = []
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await post(transport), said
            except UnavailableError as error:
                said.append(error)
                await asyncio.sleep(0.01)


async def test_llama_cpp_is_started_again(smollm2: Path, tmp_path: Path) -> None:
    model = tmp_path / "own.gguf"
    model.symlink_to(smollm2)
    async with loaded(model) as transport:
        before = await post(transport)
        url, weights, seen = transport.url, transport.weights, transport.reconnects
        kill("llama_program", str(model))
        after, said = await eventually(transport)
        assert orjson.loads(after)["choices"] == orjson.loads(before)["choices"]
        assert all("llama.cpp has ended: it was ended by SIGKILL" in str(one) for one in said)
        assert said[-1].loading
        # One label for its whole life; and who it is has to be asked again.
        assert (transport.url, transport.weights) == (url, weights)
        assert transport.reconnects > seen
    assert not processes(str(model))


async def test_one_that_hangs_is_ended_and_started_again(
    smollm2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchrank.backends.embedded.transport.HUNG_SECONDS", 0.5)
    model = tmp_path / "own.gguf"
    model.symlink_to(smollm2)
    async with loaded(model) as transport:
        before = await post(transport)
        hung = processes("llama_program", str(model))
        for process in hung:
            os.kill(process, signal.SIGSTOP)
        calls = [transport.post("/v1/chat/completions", BODY, 0.5) for _ in range(3)]
        late = await asyncio.gather(*calls, return_exceptions=True)
        for error in late:
            assert isinstance(error, UnavailableError)
            assert error.timed_out
            assert "llama.cpp has ended: it hung, and gave no answer within 0.5 s" in str(error)
        after, _ = await eventually(transport)
        assert orjson.loads(after)["choices"] == orjson.loads(before)["choices"]
        assert hung.isdisjoint(processes("llama_program", str(model)))


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_what_was_hardly_waited_for_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    log = vllm(tmp_path / "vllm", ROWS)
    monkeypatch.setenv("PATH", str(log.parent / "bin"), prepend=os.pathsep)
    async with loaded(model_folder(tmp_path / "Small-Instruct")) as transport:
        before = processes("judge_server", f"{tmp_path}/")
        with pytest.raises(UnavailableError) as late:
            await transport.exchange(method, "/v1/chat/completions", BODY, 0.0001)
        assert late.value.timed_out
        assert await post(transport)
        assert processes("judge_server", f"{tmp_path}/") == before


async def test_what_can_not_be_loaded_again_is_given_up(smollm2: Path, tmp_path: Path) -> None:
    model = tmp_path / "own.gguf"
    model.symlink_to(smollm2)
    async with loaded(model) as transport:
        model.unlink()
        kill("llama_program", str(model))
        with pytest.raises(FatalServerError, match=r"own\.gguf can't be read: No such .* 3 times"):
            await eventually(transport)
        with pytest.raises(FatalServerError):
            await post(transport)


async def test_another_model_in_its_place_is_told_by_its_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = vllm(tmp_path / "vllm", ROWS)
    monkeypatch.setenv("PATH", str(log.parent / "bin"), prepend=os.pathsep)
    model = model_folder(tmp_path / "Small-Instruct")
    async with loaded(model) as transport:
        weights = transport.weights
        (model / "model.safetensors").write_bytes(b"other weights")
        kill("judge_server", f"{tmp_path}/")
        await eventually(transport)
        assert transport.weights != weights


def when(condition: Callable[[], object], act: Callable[[], None]) -> Thread:
    """Do something while the command line holds this thread."""

    def watch() -> None:
        until(condition)
        act()

    thread = Thread(target=watch)
    thread.start()
    return thread


def test_a_job_goes_on_with_the_output_of_one_that_was_not_disturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = vllm(tmp_path / "vllm", ROWS, "--call-seconds", "0.05", "--slots", "2")
    monkeypatch.setenv("PATH", str(log.parent / "bin"), prepend=os.pathsep)
    model = model_folder(tmp_path / "Small-Instruct")
    source = written(tmp_path / "in.jsonl", ROWS)

    def run(name: str) -> tuple[bytes, str]:
        where = ("-o", tmp_path / f"{name}.jsonl", "--store", tmp_path / f"{name}.sqlite")
        how = ("--backend", "embedded", "--model-path", model, "--window-size", 6)
        found = batchrank("run", source, *where, *how)
        assert found.code == 0, found.err
        return (tmp_path / f"{name}.jsonl").read_bytes(), found.err

    expected, calm = run("calm")
    assert "ended" not in calm
    before = windows(log)
    killer = when(lambda: windows(log) - before >= 9, lambda: kill("judge_server", f"{tmp_path}/"))
    output, told = run("disturbed")
    killer.join()
    assert output == expected
    assert "vLLM has ended: it was ended by SIGKILL; it is loaded again" in told
    again = windows(log) - 2 * before
    assert 0 <= again <= before // 2


def test_a_job_whose_model_does_not_come_back_stops_resumably(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = vllm(tmp_path / "vllm", ROWS, "--call-seconds", "0.05", "--slots", "2")
    monkeypatch.setenv("PATH", str(log.parent / "bin"), prepend=os.pathsep)
    model = model_folder(tmp_path / "Small-Instruct")
    source = written(tmp_path / "in.jsonl", ROWS)
    how = ("--store", tmp_path / "s.sqlite", "--backend", "embedded", "--model-path", model)

    def break_it() -> None:
        (model / "broken").touch()
        kill("judge_server", f"{tmp_path}/")

    killer = when(lambda: windows(log) >= 9, break_it)
    stopped = batchrank("run", source, *how, "--window-size", 6)
    killer.join()
    assert stopped.code == 4, stopped.err
    assert "ValueError: Free memory on device" in stopped.err
    (model / "broken").unlink()
    found = batchrank("run", source, *how, "--window-size", 6)
    assert found.code == 0, found.err
    assert windows(log) < 2 * 36
