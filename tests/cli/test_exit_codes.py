"""How commands end: the exit code, its precedence, and one line that says why."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path

import pytest

from batchrank.backends.discovery import Place, discover
from batchrank.store.lock import store_lock
from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Result, Row, batchrank, free_port, rows_of, started, written


@pytest.fixture
def nowhere() -> str:
    """An address where no server listens."""
    return f"http://127.0.0.1:{free_port()}"


def _says_one_line(result: Result, code: int) -> str:
    """The message of a command that ended with `code`, after what the run said before."""
    assert result.code == code, result.err
    assert result.out == b""
    assert "Traceback" not in result.err
    *_, last = result.err.splitlines()
    assert last.startswith("batchrank: error: ")
    return last


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--depth", "0"], "depth"),
        (["--depth", "many"], "depth"),
        (["--strategy", "slidng"], "'sliding'"),
        (["--strategy", "sliding", "--stride", "6"], "stride 6 must be smaller"),
        (["--winners", "4"], "winners 4 must be at most half"),
        (["--passes", "forward,backward"], "'backward' is no pass"),
        (["--max-fallback", "5"], "max-fallback"),
        (["--max-fallback", "often"], "max-fallback"),
        (["--answer", "some"], "'winners'"),
        (["--backend", "magic"], "'ollama'"),
        (["--backend", "embedded", "--answer", "full"], "can only be asked for likelihoods"),
        (["--template", "direct-eo"], "direct-en"),
        (["--thinking", "maybe"], "'off'"),
        (["--api-key-env", "NO_SUCH_KEY"], "--api-key-env"),
        (["--json", "-o", "-"], "--json"),
        (["--job", "missing.toml"], "missing.toml"),
    ],
)
def test_a_bad_value_is_a_usage_error(
    source: Path, shell: Shell, server: JudgeServer, flags: list[str], said: str
) -> None:
    result = shell.run(source, *flags)
    assert result.code == 2
    assert said in result.err
    assert "Traceback" not in result.err
    assert server.calls == []


def test_an_unknown_flag_is_a_usage_error(source: Path, shell: Shell) -> None:
    result = shell.run(source, "--windw-size", "6")
    assert result.code == 2
    assert "No such option" in result.err
    assert "--window-size" in result.err


def test_an_unknown_key_of_a_job_names_the_right_one(
    source: Path, shell: Shell, tmp_path: Path
) -> None:
    spec = tmp_path / "job.toml"
    spec.write_text("windowsize = 6\n")
    assert "did you mean 'window_size'?" in _says_one_line(shell.run(source, "--job", spec), 2)


def test_flags_win_over_the_job_spec(source: Path, shell: Shell, tmp_path: Path) -> None:
    spec = tmp_path / "job.toml"
    spec.write_text('top_k = 1\nmax_doc_tokens = 50\nmax_fallback = "20%"\n')
    assert shell.run(source, "--job", spec, "--top-k", "3").code == 0
    assert {len(row["ranking"]) for row in rows_of(tmp_path / "in.ranked.jsonl")} == {3}
    assert shell.look("status", "--json").json["settings"]["max_doc_tokens"] == 50


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "does not exist"),
        (b"", "empty"),
        (b"qid,query,document\n1,a,b\n", "one row a candidate"),
        (b"1 Q0 d1 1 0.5 bm25\n1 Q0 d2 2 0.4 bm25\n", "TREC"),
    ],
)
def test_an_input_that_is_none_is_refused_before_anything_else(
    shell: Shell, server: JudgeServer, tmp_path: Path, content: bytes | None, said: str
) -> None:
    source = tmp_path / "queries.txt"
    if content is not None:
        source.write_bytes(content)
    # Even while another runner holds the store: 2 goes before 1.
    with store_lock(shell.store):
        assert said in _says_one_line(shell.run(source), 2)
    assert server.stats()["served"] == {}
    assert not shell.store.exists()


def test_debug_shows_where_an_error_came_from(tmp_path: Path) -> None:
    result = batchrank("--debug", "run", tmp_path / "absent.jsonl")
    assert result.code == 2
    assert "Traceback (most recent call last)" in result.err
    assert result.err.splitlines()[-1].startswith("batchrank: error: ")


def test_no_server_at_an_address(source: Path, tmp_path: Path, nowhere: str) -> None:
    store = tmp_path / "store"
    ended = batchrank("run", source, "--store", store, "--base-url", nowhere)
    said = _says_one_line(ended, 4)
    assert said.count(nowhere) == 1
    assert said.count(nowhere.rpartition(":")[2]) == 1
    assert "can't be reached: Connection refused; start it, or name another with" in said
    # A usage error goes before a missing server.
    ended = batchrank("run", source, "--store", store, "--base-url", nowhere, "--stride", "0")
    assert ended.code == 2


def test_no_server_on_this_machine_leaves_three_ways(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place("vLLM", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setattr("batchrank.serving.connection.discover", partial(discover, (place,)))
    said = _says_one_line(batchrank("run", source, "--store", tmp_path / "store"), 4)
    for way in ("ollama serve", "--base-url URL", "--backend embedded --model-path"):
        assert way in said


def test_a_server_on_this_machine_is_found_and_named(
    source: Path, tmp_path: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = (Place("LM Studio", f"http://127.0.0.1:{free_port()}"), Place("vLLM", server.url))
    monkeypatch.setattr("batchrank.serving.connection.discover", partial(discover, places))
    ended = batchrank("run", source, "--store", tmp_path / "store")
    assert ended.code == 0, ended.err
    assert f"found vLLM at {server.url}" in ended.err


def test_a_model_that_is_not_there_is_named(source: Path, shell: Shell) -> None:
    said = _says_one_line(shell.run(source, "--model", "qwen"), 4)
    assert "qwen" in said
    assert "judge" in said  # what there is


def test_a_locked_store_names_its_holder(source: Path, shell: Shell, server: JudgeServer) -> None:
    with store_lock(shell.store):
        assert "in use by process " in _says_one_line(shell.run(source), 1)
    assert server.calls == []


def test_a_file_that_is_no_store_is_not_touched(source: Path, shell: Shell, tmp_path: Path) -> None:
    shell.store.write_text("my diary")
    beside = sorted(tmp_path.iterdir())
    assert "is not a batchrank store" in _says_one_line(shell.run(source), 2)
    assert shell.store.read_text() == "my diary"
    assert sorted(tmp_path.iterdir()) == beside


@pytest.mark.parametrize("command", ["run", "status", "export", "inspect", "backup", "gc"])
@pytest.mark.parametrize(
    ("store", "said"),
    [
        (".", "is a folder"),
        ("/", "is a folder"),
        ("/dev/null", "is no file"),
        ("missing/store", "there is no store at missing/store"),
    ],
)
def test_a_store_that_can_be_none_is_a_usage_error(
    source: Path,
    tmp_path: Path,
    command: str,
    store: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    given: dict[str, list[object]] = {
        "run": [source, "--base-url", "http://127.0.0.1:1"],
        "inspect": ["q1"],
        "backup": ["copy"],
        "gc": ["--older-than", "30d"],
    }
    ended = batchrank(command, *given.get(command, []), "--store", store)
    assert said in _says_one_line(ended, 2)
    assert sorted(tmp_path.iterdir()) == before


def test_an_output_that_cannot_be_written_is_said_before_the_night(
    source: Path, shell: Shell, server: JudgeServer, tmp_path: Path
) -> None:
    output = tmp_path / "missing" / "out.jsonl"
    assert "create its folder" in _says_one_line(shell.run(source, "-o", output), 2)
    output.parent.touch()
    assert "create its folder" in _says_one_line(shell.run(source, "-o", output), 2)
    assert "is a folder" in _says_one_line(shell.run(source, "-o", tmp_path), 2)
    assert server.stats()["served"] == {}
    assert not shell.store.exists()


def test_a_folder_that_vanishes_during_the_night_loses_no_answer(
    source: Path,
    shell: Shell,
    server: JudgeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "missing" / "out.jsonl"
    # It was there when the night began.
    monkeypatch.setattr("batchrank.cli.commands.run.check_paths", lambda *_: None)
    assert "create its folder" in _says_one_line(shell.run(source, "-o", output), 1)
    asked = len(server.calls)
    output.parent.mkdir()
    assert shell.run(source, "-o", output).code == 0
    assert len(server.calls) == asked
    assert len(rows_of(output)) == 3


def test_a_gate_keeps_yesterdays_output(
    source: Path, tmp_path: Path, shell: Shell, rows: list[Row]
) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("yesterday\n")
    written(source, [*rows, b"{torn"])
    ended = shell.run(source, "-o", output)
    assert ended.code == 3
    assert "1 of 4 queries (25.0%) failed; --max-failed allows 1.0%" in ended.err
    assert output.read_text() == "yesterday\n"
    assert len(rows_of(tmp_path / "out.jsonl.rejected")) == 4
    # Let through without a new call, as a fraction or in per cent.
    assert shell.run(source, "-o", output, "--max-failed", "25%").code == 0
    assert len(rows_of(output)) == 4


def test_the_module_runs_as_the_command_does(tmp_path: Path) -> None:
    with started("--version", cwd=tmp_path) as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.startswith("batchrank ")


def test_a_process_that_calls_the_command_line_keeps_its_garbage_collector(
    shell: Shell, source: Path
) -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    assert shell.run(source).code == 0
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
