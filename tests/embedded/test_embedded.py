"""The embedded server: a real llama.cpp, and what goes wrong before, while and after it runs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from batchrank.backends.embedded.identity import fingerprint
from batchrank.backends.embedded.runtimes import Load
from batchrank.backends.embedded.server import EmbeddedServer
from batchrank.errors import NoServerError, UsageError
from tests.conftest import ROOT

SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
QUESTION = [{"role": "user", "content": "Name three numbers."}]
POLLS = 6000
"""How often a process is looked at, every 10 ms, before a test gives up."""
LONG = [{"role": "user", "content": "word " * 400}]
"""What takes seconds to read."""

STARTS_AND_WAITS = """
import asyncio, sys
from pathlib import Path
from batchrank.backends.embedded.runtimes import Load
from batchrank.backends.embedded.server import EmbeddedServer

async def main() -> None:
    async with EmbeddedServer() as server:
        print(await server.start(Path(sys.argv[1]), Load(512, threads=1)), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def get(url: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.json()


async def post(url: str, **body: object) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        return response.status, await response.json()


async def until_busy(url: str) -> None:
    for _ in range(POLLS):
        if any(slot["is_processing"] for slot in await get(f"{url}/slots")):
            return
        await asyncio.sleep(0.01)
    pytest.fail("no slot of the server took up the request")


def serving(model: Path) -> set[int]:
    """The processes that serve `model`: their command lines name it and the program."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (entry / "cmdline").read_bytes().decode().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        if str(model) in arguments and any("llama_program" in part for part in arguments):
            found.add(int(entry.name))
    return found


@pytest.fixture
def own_model(smollm2: Path, tmp_path: Path) -> Path:
    """The model under a name of this test's own, which tells its processes from others."""
    path = tmp_path / "own.gguf"
    path.symlink_to(smollm2)
    return path


async def test_serves_the_model_as_llama_cpp_does(smollm2: Path) -> None:
    async with EmbeddedServer() as server:
        url = await server.start(smollm2, Load(1500, slots=2, threads=1))
        props = await get(f"{url}/props")
        models = await get(f"{url}/v1/models")
        tokens = await post(f"{url}/tokenize", content="hello world")

    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
    assert props["total_slots"] == 2
    assert props["default_generation_settings"]["n_ctx"] == 1536
    assert [model["id"] for model in models["data"]] == ["SmolLM2-135M-Instruct.Q4_1"]
    assert tokens == (200, {"tokens": [28120, 905]})


async def test_constrains_by_grammar(llama_server: str) -> None:
    _, answer = await post(
        f"{llama_server}/v1/chat/completions",
        messages=QUESTION,
        temperature=0,
        grammar='root ::= [0-9] " " [0-9]',
    )
    assert re.fullmatch(r"\d \d", answer["choices"][0]["message"]["content"])


async def test_constrains_by_json_schema(llama_server: str) -> None:
    schema = {"type": "array", "items": {"enum": [1, 2, 3]}, "minItems": 3, "maxItems": 3}
    _, answer = await post(
        f"{llama_server}/v1/chat/completions",
        messages=QUESTION,
        temperature=0,
        response_format={"type": "json_schema", "json_schema": {"name": "r", "schema": schema}},
    )
    numbers = json.loads(answer["choices"][0]["message"]["content"])
    assert len(numbers) == 3
    assert set(numbers) <= {1, 2, 3}


async def test_gives_log_probabilities_of_thirty_tokens(llama_server: str) -> None:
    _, answer = await post(
        f"{llama_server}/v1/chat/completions",
        messages=QUESTION,
        temperature=0,
        max_tokens=1,
        logprobs=True,
        top_logprobs=30,
    )
    assert len(answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 30


async def test_refuses_a_prompt_longer_than_a_slot(llama_server: str) -> None:
    status, answer = await post(f"{llama_server}/v1/chat/completions", messages=LONG * 10)
    assert status == 400
    assert answer["error"]["type"] == "exceed_context_size_error"
    assert answer["error"]["n_ctx"] == 2048


async def test_stops_while_a_request_runs(own_model: Path) -> None:
    server = EmbeddedServer()
    url = await server.start(own_model, Load(2048, threads=1))
    running = asyncio.create_task(post(f"{url}/v1/chat/completions", messages=LONG))
    await until_busy(url)
    await server.stop()
    with pytest.raises(aiohttp.ClientError):
        await running
    assert not serving(own_model)


async def test_stopping_twice_or_without_a_start_does_nothing(own_model: Path) -> None:
    server = EmbeddedServer()
    await server.stop()
    await server.start(own_model, Load(512, threads=1))
    await server.stop()
    await server.stop()
    assert not serving(own_model)


async def test_an_interrupted_start_leaves_no_process(own_model: Path) -> None:
    server = EmbeddedServer()
    start = asyncio.create_task(server.start(own_model, Load(512, threads=1)))
    while not serving(own_model):
        assert not start.done()
        await asyncio.sleep(0)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not serving(own_model)


async def test_a_model_process_killed_while_loading_is_reported(own_model: Path) -> None:
    start = asyncio.create_task(EmbeddedServer().start(own_model, Load(512, threads=1)))
    while not serving(own_model):
        assert not start.done()
        await asyncio.sleep(0)
    os.kill(serving(own_model).pop(), signal.SIGKILL)
    with pytest.raises(NoServerError, match="ended by SIGKILL"):
        await start


async def test_work_in_flight_outlives_the_signals_that_stop_a_job(own_model: Path) -> None:
    async with EmbeddedServer() as server:
        url = await server.start(own_model, Load(2048, threads=1))
        running = asyncio.create_task(
            post(f"{url}/v1/chat/completions", messages=LONG, max_tokens=1)
        )
        await until_busy(url)
        for stop in (signal.SIGINT, signal.SIGTERM):
            os.kill(serving(own_model).pop(), stop)
        status, answer = await running
    assert status == 200
    assert answer["usage"]["completion_tokens"] == 1


async def test_the_model_process_ends_with_a_killed_job(own_model: Path) -> None:
    job = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STARTS_AND_WAITS, str(own_model)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert job.stdout is not None
    assert (await job.stdout.readline()).startswith(b"http://127.0.0.1:")
    assert serving(own_model)
    job.kill()
    await job.wait()
    for _ in range(POLLS):
        if not serving(own_model):
            return
        await asyncio.sleep(0.01)
    pytest.fail("the model process outlived its job")


async def test_a_torn_model_is_refused_in_llama_cpps_words(smollm2: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.gguf"
    with smollm2.open("rb") as whole:
        torn.write_bytes(whole.read(4_000_000))
    with pytest.raises(NoServerError, match=r"can't load .*torn\.gguf: .*corrupted or incomplete"):
        await EmbeddedServer().start(torn, Load(512, threads=1))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04 a zip", "is no GGUF file: it starts with b'PK"),
        (b"", "is no GGUF file"),
        (None, "can't be read: No such file"),
    ],
)
async def test_what_is_no_model_is_refused_at_once(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(said)):
        await EmbeddedServer().start(path, Load(512, threads=1))


async def test_a_folder_is_no_model_by_itself(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"folder without config\.json"):
        await EmbeddedServer().start(tmp_path, Load(512, threads=1))


async def test_without_the_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(UsageError, match=re.escape("pip install 'batchrank[embedded]'")):
        await EmbeddedServer().start(tmp_path / "model.gguf", Load(512, threads=1))


async def test_the_fingerprint_is_the_files_sha_256(smollm2: Path) -> None:
    assert await fingerprint(smollm2) == SMOLLM2_SHA256


async def test_a_missing_file_has_no_fingerprint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read: No such file"):
        await fingerprint(tmp_path / "absent.gguf")
