"""`init` writes a job spec that is fit to run, after a look at the input and the servers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from batchrank.backends.discovery import Place, look
from batchrank.spec.loading import load_spec
from scripts.judge import JudgeServer
from tests.cli.running import Result, Row, batchrank, judge, requests, rows_of, serving, written

LOOK = "batchrank.cli.start.look"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return tmp_path / "night.toml"


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing listened on this machine."""
    monkeypatch.setattr(LOOK, lambda _: look(()))


def made(source: Path, job: Path, *arguments: object) -> Result:
    return batchrank("init", source, "-o", job, *arguments)


@pytest.mark.parametrize(
    ("kind", "backend", "model"),
    [("vllm", "openai", "judge"), ("ollama", "ollama", "judge:latest")],
)
def test_what_it_writes_runs_as_it_is(
    tmp_path: Path,
    job: Path,
    rows: list[Row],
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    backend: str,
    model: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving(judge(rows, kind=kind)) as server:
        first = made(source, job, "--base-url", server.url)
        assert first.code == 0, first.err
        assert "next: batchrank doctor --job" in first.out.decode()
        spec = load_spec(job, {})
        assert (spec.backend, spec.model) == (backend, model)
        ran = batchrank("run", "--job", job)
    assert ran.code == 0, ran.err
    assert len(rows_of((tmp_path / "in.ranked.jsonl").read_bytes())) == len(rows)


def test_servers_of_this_machine_are_looked_for(
    job: Path, source: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = (Place("Ollama", server.url, "ollama"), Place("vLLM", server.url))
    monkeypatch.setattr(LOOK, lambda _: partial(look, places)())
    assert f"vLLM at {server.url}" in made(source, job).out.decode()
    assert f"# vLLM at {server.url} has judge." in job.read_text()


@pytest.mark.usefixtures("no_server")
def test_without_a_server_the_embedded_model_is_named(job: Path, source: Path) -> None:
    made(source, job)
    spec = load_spec(job, {})
    assert spec.uses_built_in_model
    assert spec.max_doc_tokens == 120  # what suits it stays


def test_a_server_that_was_named_must_be_there(job: Path, source: Path) -> None:
    ended = made(source, job, "--base-url", "http://127.0.0.1:9")
    assert ended.code == 4
    assert "no model server answers at http://127.0.0.1:9" in ended.err
    assert not job.exists()


@pytest.mark.parametrize(
    ("query", "template"),
    [("潮汐是怎么形成的", "direct-zh"), ("潮汐はなぜ起こる", None), ("what causes tides", None)],
)
def test_instructions_are_in_the_language_of_the_queries(
    tmp_path: Path, job: Path, server: JudgeServer, query: str, template: str | None
) -> None:
    rows = requests(queries=3, candidates=4)
    for row in rows:
        row["query"]["text"] = query
    made(written(tmp_path / "in.jsonl", rows), job, "--base-url", server.url)
    assert load_spec(job, {}).template == template


@pytest.mark.usefixtures("no_server")
def test_what_is_there_or_can_not_be_used_is_refused(
    tmp_path: Path, job: Path, source: Path
) -> None:
    made(source, job)
    before = job.read_bytes()
    again = made(source, job)
    assert (again.code, job.read_bytes()) == (2, before)
    assert "is there already" in again.err

    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"a": 1}\n')
    assert "`batchrank check` says why" in made(bad, tmp_path / "b.toml").err
    over = made(source, source)
    assert (over.code, "is the input" in over.err) == (2, True)


@pytest.mark.usefixtures("no_server")
def test_lines_that_can_not_be_used_are_said(job: Path, source: Path) -> None:
    with source.open("a") as file:
        file.write("{}\n")
    made(source, job)
    assert "1 line at the beginning can't be used" in job.read_text()
