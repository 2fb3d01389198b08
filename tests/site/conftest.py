"""A folder with everything in it that the docs name, and a server where they say one is."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import orjson
import pytest

from batchrank.backends.discovery import Place, discover, look
from batchrank.formats.requests import parse_request
from batchrank.values import Request
from scripts.judge import JudgeConfig, JudgeServer
from scripts.judge.knowledge import read_knowledge
from tests.cli.running import batchrank, serving, written
from tests.conftest import ROOT
from tests.publishing.servers import RedisServer, running_redis

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
def cache_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis to publish to."""
    with running_redis(tmp_path_factory.mktemp("cache")) as server:
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
    for output in ("run.trec", "other.trec", "today.jsonl"):
        exported = batchrank("export", "--store", folder / "night.sqlite", "-o", folder / output)
        assert exported.code == 0, exported.err
    shutil.copy(folder / "today.jsonl", folder / "yesterday.jsonl")
    requests = [parse_request(line).request for line in SAMPLE.read_bytes().splitlines()]
    _write_rows(folder / "bm25.trec", " ", _first_stage(requests))
    documents = [document for request in requests for document in request.candidates]
    _write_rows(folder / "collection.tsv", "\t", ((one.docid, one.text) for one in documents))
    topics = ((request.query.qid, request.query.text) for request in requests)
    _write_rows(folder / "queries.tsv", "\t", topics)
    beir = folder / "scifact"
    beir.mkdir()
    shutil.copy(folder / "bm25.trec", beir / "bm25.trec")
    written(beir / "corpus.jsonl", [{"_id": one.docid, "text": one.text} for one in documents])
    queries = [{"_id": one.query.qid, "text": one.query.text} for one in requests]
    written(beir / "queries.jsonl", queries)
    (folder / "night.toml").unlink()
    return folder


def _rank(folder: Path, server: JudgeServer, store: Path, *arguments: str) -> None:
    ran = batchrank(
        *("run", folder / "queries.jsonl", "--store", store, "--base-url", server.url),
        *("--backend", "ollama", *arguments),
    )
    assert ran.code == 0, ran.err


def _first_stage(requests: Iterable[Request]) -> Iterator[tuple[object, ...]]:
    for request in requests:
        for place, document in enumerate(request.candidates, 1):
            yield request.query.qid, "Q0", document.docid, place, 1000 - place, "bm25"


def _write_rows(path: Path, separator: str, rows: Iterable[tuple[object, ...]]) -> None:
    path.write_text("".join(f"{separator.join(map(str, row))}\n" for row in rows))


@pytest.fixture
def desk(
    tmp_path: Path, prepared: Path, sample_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of the folder to be in, where the model server is found as on a user's machine."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    places = (Place("Ollama", sample_server.url, "ollama"),)
    monkeypatch.setattr("batchrank.serving.connection.discover", partial(discover, places))
    monkeypatch.setattr("batchrank.cli.commands.init.look", lambda _: look(places))
    night = {"input": "log-{date}.jsonl", "store": "nightly.sqlite", "model": MODEL}
    lines = [f"{name} = {orjson.dumps(value).decode()}\n" for name, value in night.items()]
    (tmp_path / "nightly.toml").write_text("".join(lines))
    return tmp_path
