"""Every command that reads an input refuses it in words of its own, whatever is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from tests.cli.advice import check_advice
from tests.cli.running import batchrank, requests, written

READERS: dict[str, tuple[str, ...]] = {
    "run": ("--base-url", "http://127.0.0.1:9"),
    "check": (),
    "convert": ("out.jsonl",),
    "doctor": ("--base-url", "http://127.0.0.1:9"),
    "init": ("-o", "job.toml", "--base-url", "http://127.0.0.1:9"),
    "diagnose": ("--base-url", "http://127.0.0.1:9"),
    "tune": ("-o", "tuned.toml", "--base-url", "http://127.0.0.1:9"),
    "label": ("-o", "judged.qrels", "--base-url", "http://127.0.0.1:9"),
}
"""What each is given beside QUERIES."""
FORMS = {"run": "--format", "check": "--format", "convert": "--from"}


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Inputs that can't be used as they are."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 2.5 bm25\n")
    (tmp_path / "array.json").write_text('[{"query": "a"}]')
    (tmp_path / "topics.tsv").write_text("1\twhat is a flea\n")
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "beir").mkdir()
    (tmp_path / "beir" / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n')
    parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "table.parquet")
    return [*sorted(tmp_path.iterdir()), tmp_path / "nowhere.jsonl"]


@pytest.mark.parametrize("command", READERS)
def test_what_is_wrong_with_an_input_is_said_in_the_commands_own_flags(
    odd: list[Path], command: str
) -> None:
    """`batchrank` of tests.cli.running checks the flags that an error names."""
    forms = [("--format", name) for name in ("jsonl", "json", "csv", "parquet", "trec", "beir")]
    for path in odd:
        for form in [(), *(forms if command in FORMS else ())]:
            flags = [FORMS[command], form[1]] if form else []
            ended = batchrank(command, path.name, *READERS[command], *flags)
            assert ended.code in (0, 2, 4), (path, form, ended)


def test_what_is_wrong_with_an_output_is_said_in_the_commands_own_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = written(tmp_path / "in.jsonl", requests(queries=1, candidates=2))
    (tmp_path / "folder").mkdir()
    os.link(source, tmp_path / "same.jsonl")
    store = tmp_path / "store.sqlite"
    store.write_bytes(b"SQLite format 3\0")
    for output in ("in.jsonl", "same.jsonl", "folder", "nowhere/out"):
        assert batchrank("convert", "in.jsonl", output).code == 2
        for command in ("run", "init", "label", "tune"):
            assert batchrank(command, "in.jsonl", "-o", output).code == 2, (command, output)
    name = store.name
    for arguments in (
        f"publish {name} sqlite:{name}",
        f"backup {name} --store {name}",
        f"export -o {name} --store {name}",
        f"report {name} -o {name}",
        f"merge-stores {name} -o {name}",
    ):
        assert batchrank(*arguments.split()).code == 2, arguments


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("convert", "say --format json"),
        ("convert", "choose another with -o"),
        ("publish", "choose another with -o"),
        ("check", "name one with --model"),
    ],
)
def test_advice_that_can_not_be_followed_is_found(command: str, said: str) -> None:
    with pytest.raises(AssertionError, match=f"{command} has no -"):
        check_advice([command, "x"], f"batchrank: error: 'x': {said}")
    check_advice([command, "x"], "batchrank: error: 'x' is wrong: run `batchrank run -o FILE`")
