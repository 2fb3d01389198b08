"""A folder with everything in it that the docs name, and a server where they say one is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import orjson
import pytest

from batchrank.backends.discovery import Place, discover, look
from batchrank.formats.requests import parse_request
from scripts.judge import JudgeConfig, JudgeServer
from scripts.judge.knowledge import read_knowledge
from tests.cli.running import batchrank, serving
from tests.conftest import ROOT

SAMPLE = ROOT / "jobs" / "sample.jsonl"
QRELS = ROOT / "jobs" / "sample.qrels"
MODEL = "qwen3:8b"


@pytest.fixture(scope="session")
def sample_server() -> Iterator[JudgeServer]:
    """An Ollama that has the model of the docs and knows the sample."""
    known = read_knowledge(gains=QRELS, inputs=[SAMPLE])
    with serving(JudgeServer(JudgeConfig(kind="ollama", model=MODEL), known)) as server:
        yield server


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, sample_server: JudgeServer) -> Path:
    """The files that docs speak of, as some nights left them."""
    folder = tmp_path_factory.mktemp("docs")
    today = f"{datetime.now().astimezone():%Y-%m-%d}"
    for name in ("queries.jsonl", f"log-{today}.jsonl"):
        shutil.copy(SAMPLE, folder / name)
    for name in ("judged.qrels", "qrels.txt", "canaries.qrels"):
        shutil.copy(QRELS, folder / name)
    (folder / "night.toml").write_text(f'input = "{folder}/queries.jsonl"\nmodel = "{MODEL}"\n')
    for number in range(5):
        _rank(folder, sample_server, folder / "night.sqlite", "--depth", str(8 + number))
    _rank(folder, sample_server, folder / "batchrank.sqlite")
    for output, form in (("run.trec", "trec"), ("other.trec", "trec"), ("today.jsonl", "jsonl")):
        store = folder / "night.sqlite"
        batchrank("export", "--store", store, "--format", form, "-o", folder / output)
    shutil.copy(folder / "today.jsonl", folder / "yesterday.jsonl")
    (folder / "bm25.trec").write_bytes(b"".join(_first_stage(SAMPLE.read_bytes())))
    (folder / "night.toml").unlink()
    return folder


def _rank(folder: Path, server: JudgeServer, store: Path, *arguments: str) -> None:
    ran = batchrank(
        *("run", folder / "queries.jsonl", "--store", store, "--base-url", server.url),
        *("--backend", "ollama", *arguments),
    )
    assert ran.code == 0, ran.err


def _first_stage(lines: bytes) -> Iterator[bytes]:
    for line in lines.splitlines():
        request = parse_request(line).request
        for place, document in enumerate(request.candidates, 1):
            words = (request.query.qid, "Q0", document.docid, place, 1000 - place, "bm25")
            yield f"{' '.join(map(str, words))}\n".encode()


@pytest.fixture
def desk(
    tmp_path: Path, prepared: Path, sample_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of the folder to be in, where the model server is found as on a user's machine."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    places = (Place("Ollama", sample_server.url, "ollama"),)
    monkeypatch.setattr("batchrank.serving.connection.discover", partial(discover, places))
    monkeypatch.setattr("batchrank.cli.start.look", lambda _: look(places))
    night = {"input": "log-{date}.jsonl", "store": "nightly.sqlite", "model": MODEL}
    lines = [f"{name} = {orjson.dumps(value).decode()}\n" for name, value in night.items()]
    (tmp_path / "nightly.toml").write_text("".join(lines))
    return tmp_path
