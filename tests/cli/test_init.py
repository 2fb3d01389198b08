"""`init` writes a job spec that is fit to run, after a look at the input and the servers."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from batchrank.backends.discovery import Place, look
from batchrank.spec.loading import load_spec, load_templates
from scripts.judge import JudgeServer
from tests.cli.running import (
    Result,
    Row,
    batchrank,
    gain,
    judge,
    requests,
    rows_of,
    serving,
    written,
)

TODAY = datetime.now(UTC).date()
LOOK = "batchrank.cli.commands.init.look"


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


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("name", ["x{1}", "{date}", "a{{b", "}", "{{{1}}}", "o d $d"])
def test_names_of_files_are_meant_as_they_are(
    tmp_path: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    source, job = written(tmp_path / f"{name}.jsonl", rows), Path(f"{name}.toml")
    ended = made(source, job)
    assert ended.code == 0, ended.err
    said = ended.out.decode().splitlines()[-1].removeprefix("next: ")
    assert shlex.split(said) == ["batchrank", "doctor", "--job", str(job)]
    spec = load_spec(job, {}, TODAY)
    assert (spec.input, spec.store) == (str(source), Path(f"{name}.sqlite"))
    assert spec.output == str(tmp_path / f"{name}.ranked.jsonl")
    job.write_text(re.sub("^# (?=publish|report)", "", job.read_text(), flags=re.MULTILINE))
    whole = load_spec(job, {}, TODAY)
    assert whole.publish is not None
    assert whole.publish.target == f"sqlite:{name}-cache.sqlite"
    assert whole.report == f"{name}-{TODAY}.html"
    # A name on the command line is no template.
    assert load_spec(job, {"input": "y{{1}}.jsonl"}, TODAY).input == "y{{1}}.jsonl"


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


def uncommented(text: str) -> str:
    """The spec with the # before each of its settings removed."""
    return re.sub(r"(?m)^# (?=\w+ = )", "", text)


@pytest.mark.parametrize("chinese", [False, True])
@pytest.mark.parametrize("candidates", [1, 12, 61, 101])
def test_every_comment_sign_can_be_removed(
    tmp_path: Path,
    job: Path,
    server: JudgeServer,
    monkeypatch: pytest.MonkeyPatch,
    candidates: int,
    chinese: bool,
) -> None:
    rows = requests(queries=2, candidates=candidates)
    if chinese:
        rows[0]["query"]["text"] = rows[1]["query"]["text"] = "潮汐是怎么形成的"
    source = written(tmp_path / "in.jsonl", rows)
    for url in ((), ("--base-url", server.url)):
        monkeypatch.setattr(LOOK, look if url else lambda _: look(()))
        job.unlink(missing_ok=True)
        assert made(source, job, *url).code == 0
        text = job.read_text()
        assert ("Depth 60" in text) == (candidates > 60)
        assert ("all are reranked" in text) == (candidates <= 100)
        load_templates(load_spec(job, {}))
        job.write_text(uncommented(text))
        spec = load_spec(job, {})
        load_templates(spec)
        assert spec.publish is not None
        assert None not in (spec.report, spec.deadline, spec.gate_qrels, spec.min_overlap)
        assert len(re.findall("(?m)^# [a-z_]+ = ", text)) >= 7


def test_without_comment_signs_it_is_the_whole_night(
    tmp_path: Path, job: Path, rows: list[Row], server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = [{"_id": one["docid"], **one["doc"]} for row in rows for one in row["candidates"]]
    written(tmp_path / "corpus.jsonl", corpus)
    written(tmp_path / "topics.jsonl", [{"_id": "q1", "text": "who"}, {"_id": "q2", "text": "a"}])
    run = [f"{q} Q0 {q}-d{n} {n} {9 - n} bm25\n" for q in ("q1", "q2") for n in range(1, 4)]
    Path("bm25.trec").write_text("".join(run))
    best = max((f"q1-d{n}" for n in range(1, 4)), key=lambda docid: gain("q1", docid))
    Path("canaries.qrels").write_text(f"q1 0 {best} 1\n")
    texts = ("--corpus", "corpus.jsonl", "--topics", "topics.jsonl")
    assert made(Path("bm25.trec"), job, "--base-url", server.url, *texts).code == 0
    job.write_text(uncommented(job.read_text()))
    # Whatever the time is: a deadline further away.
    hour = (datetime.now(UTC).astimezone() + timedelta(hours=5)).strftime("%H:%M")
    ended = batchrank("run", "--job", job, "--deadline", hour, "--date", "2026-11-30")
    assert ended.code == 0, ended.err
    assert [row["status"] for row in rows_of(tmp_path / "bm25.ranked.jsonl")] == ["ok", "ok"]
    assert Path("night-cache.sqlite").exists()
    assert Path("night-2026-11-30.html").exists()
