"""No command writes over what a person made: tested over every command that writes a file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from batchrank.formats.holdings import Holding, holding
from batchrank.store.lock import store_lock
from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Result, Row, batchrank, written
from tests.cli.walking import leaves

LABEL = {
    "check": True,
    "corrected": None,
    "grade": 1,
    "query": "tides",
    "title": "",
    "text": "The moon.",
    "qid": "q1",
    "docid": "d1",
}
GRADED = orjson.dumps(LABEL) + b"\n" + orjson.dumps({**LABEL, "corrected": 2}) + b"\n"

WRITERS: dict[str, list[str]] = {
    "run": ["in.jsonl", "--store", "store.sqlite", "-o", "{}"],
    "convert": ["in.jsonl", "{}"],
    "export": ["--store", "store.sqlite", "-o", "{}"],
    "tune": ["in.jsonl", "--qrels", "judged.qrels", "-o", "{}"],
    "label": ["in.jsonl", "-o", "{}"],
    "report": ["store.sqlite", "-o", "{}"],
    "backup": ["{}", "--store", "store.sqlite"],
    "merge-stores": ["store.sqlite", "-o", "{}"],
    "init": ["in.jsonl", "-o", "{}"],
    "publish sqlite": ["store.sqlite", "sqlite:{}"],
    "publish jsonl": ["store.sqlite", "jsonl:{}"],
    "publish parquet": ["store.sqlite", "parquet:{}"],
}
"""How each command that writes a file is called; {} is its name. A command may have several."""
REPLACED = {"convert": {Holding.QUERIES}}
"""What a command writes itself, and so replaces."""
ELSEWHERE = {"systemd-unit": "writes new files into a folder and replaces none"}


def called(command: str, name: str) -> Result:
    """A command that would write a file of that name."""
    word, *_ = command.split()
    return batchrank(word, *(part.format(name) for part in WRITERS[command]))


def made(folder: Path, held: Holding, content: bytes) -> Path:
    """A file of a person's, which holds that."""
    name = "own.toml" if held is Holding.SETTINGS else "own"
    path = folder / name
    match held:
        case Holding.STORE:
            with closing(sqlite3.connect(path)) as other:
                other.execute("CREATE TABLE notes (text TEXT)")
                other.commit()
        case Holding.SETTINGS:
            path.write_text("# mine\ndepth = 20\n")
        case Holding.QUERIES:
            path.write_bytes(content)
        case Holding.JUDGEMENTS:
            path.write_text("q1 0 d1 2\nq1 0 d2 0\n")
        case Holding.GRADES:
            path.write_bytes(GRADED)
    assert holding(path) is held
    return path


@pytest.fixture
def folder(source: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an input, judgements and a finished store, in which commands are called."""
    monkeypatch.chdir(source.parent)
    assert shell.run(source, "--limit", "1").code == 0
    Path("judged.qrels").write_text("q1 0 d1 1\n")
    return source.parent


def test_every_command_that_writes_a_file_is_looked_at() -> None:
    writes = {
        words[0]
        for words, command in leaves().items()
        for option in command.params
        if option.name in ("output", "target") or "--output" in option.opts
    }
    known = {call.split()[0] for call in WRITERS}
    assert writes == {*known, *ELSEWHERE}, "say here how a new command writes its file"


@pytest.mark.parametrize("command", WRITERS)
def test_what_a_person_made_is_not_written_over(
    folder: Path, source: Path, server: JudgeServer, command: str
) -> None:
    calls = len(server.calls)
    for held in set(Holding) - REPLACED.get(command, set()):
        path = made(folder, held, source.read_bytes())
        before = path.read_bytes()
        ended = called(command, path.name)
        assert (ended.code, ended.out) == (2, b""), (held, ended.err)
        (line,) = ended.err.splitlines()
        assert f"{path.name}'" in line
        assert path.read_bytes() == before
        path.unlink()
    assert len(server.calls) == calls


@pytest.mark.parametrize("command", WRITERS)
def test_an_output_is_no_folder_and_not_in_one_that_is_missing(folder: Path, command: str) -> None:
    (folder / "sub").mkdir()
    for name in ("sub", "nowhere/x"):
        ended = called(command, name)
        assert (ended.code, ended.out) == (2, b""), ended.err
        assert name in ended.err


def test_judgements_are_written_over_by_the_very_same_alone(folder: Path) -> None:
    taken_back = ("label", "--corrected", "weak.check.jsonl", "-o", "back.qrels")
    Path("weak.check.jsonl").write_bytes(orjson.dumps({**LABEL, "corrected": 2}) + b"\n")
    for _ in range(2):
        assert batchrank(*taken_back).code == 0
    Path("back.qrels").write_text("q1 0 d1 0\n")
    ended = batchrank(*taken_back)
    assert (ended.code, "holds other judgements" in ended.err) == (2, True)
    assert Path("back.qrels").read_text() == "q1 0 d1 0\n"


@pytest.mark.parametrize("end", ["", "-wal", ".lock", ".status"])
def test_a_backup_is_no_file_of_its_store(folder: Path, end: str) -> None:
    ended = batchrank("backup", f"store.sqlite{end}", "--store", "store.sqlite")
    assert (ended.code, " is the store" in ended.err) == (2, True)


def test_a_store_in_use_is_waited_for_by_who_can(folder: Path, shell: Shell) -> None:
    with store_lock(shell.store):
        waits = shell.run("in.jsonl").err
        cannot = shell.look("gc", "--older-than", "1d").err
    assert "in use by process " in waits
    assert "in use by process " in cannot
    assert ("--wait-for-lock" in waits, "--wait-for-lock" in cannot) == (True, False)


@pytest.mark.parametrize("command", ["run", "gc"])
def test_a_store_takes_no_other_program_s_file_for_its_lock(folder: Path, command: str) -> None:
    (folder / "uv.lock").write_text("version = 1\n")
    (folder / "uv").touch()
    given = ["in.jsonl"] if command == "run" else ["--older-than", "1d"]
    ended = batchrank(command, *given, "--store", "uv")
    assert (ended.code, "uv.lock is another program's file" in ended.err) == (2, True)
    assert (folder / "uv.lock").read_text() == "version = 1\n"


@pytest.mark.parametrize(
    ("content", "held"),
    [
        (b"", None),
        (b"\n\n", None),
        (b"yesterday\n", None),
        (b"q1 Q0 d1 1 2.5 tag\n", None),
        (b'{"qid": "q1", "query": "t", "ranking": [{"docid": "d1", "rank": 1}]}\n', None),
        (orjson.dumps(LABEL) + b"\n", None),
        (30 * (orjson.dumps(LABEL) + b"\n") + GRADED, Holding.GRADES),
        (b"\xef\xbb\xbfq1 0 d1 1\n", Holding.JUDGEMENTS),
        (b'[{"qid": "q", "query": "t", "candidates": ["a"]}]', Holding.QUERIES),
        (b"qid,query,docid,text\nq,t,d,x\n", Holding.QUERIES),
        (b"plain,words\n", None),
        (b'{broken\n{"qid": "q", "query": "t", "candidates": ["a"]}', Holding.QUERIES),
    ],
)
def test_what_batchrank_makes_itself_may_be_replaced(
    tmp_path: Path, content: bytes, held: Holding | None
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert holding(path) is held


def test_what_is_packed_is_looked_into(tmp_path: Path, rows: list[Row]) -> None:
    assert holding(written(tmp_path / "in.jsonl.zst", rows)) is Holding.QUERIES
    assert holding(tmp_path / "none") is None
    assert holding(tmp_path) is None
