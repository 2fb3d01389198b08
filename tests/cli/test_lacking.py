"""Queries without candidates are counted and named by every command that reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.running import Row, batchrank, rows_of, written
from tests.cli.test_formats import beir

SENTENCE = "4 queries ('w1', 'w2', 'w3', …) of the topics"


@pytest.fixture
def folder(tmp_path: Path, rows: list[Row]) -> Path:
    """A BEIR folder with four topics that its run has no line for."""
    made = beir(tmp_path / "beir", rows)
    with (made / "queries.jsonl").open("a") as topics:
        topics.writelines(f'{{"_id": "w{number}", "text": "where"}}\n' for number in range(1, 5))
    return made


def test_topics_that_the_run_lacks_are_named(shell: Shell, folder: Path, tmp_path: Path) -> None:
    texts = ("--corpus", folder / "corpus.jsonl", "--topics", folder / "queries.jsonl")
    for source in ((folder,), (folder / "bm25.trec", *texts)):
        converted = batchrank("convert", *source, tmp_path / "out.jsonl")
        assert (converted.code, SENTENCE in converted.err) == (0, True)
        assert "3 queries written, 0 left out" in converted.err
        checked = batchrank("check", *source)
        assert (checked.code, f"warning: {SENTENCE}" in checked.out.decode()) == (0, True)
        assert batchrank("check", *source, "--json").json["notes"][0].startswith(SENTENCE)
        # A night that repeats the one before says it again.
        for _ in range(2):
            ran = shell.run(*source, "-o", tmp_path / "ranked.jsonl")
            assert (ran.code, f"warning: {SENTENCE}" in ran.err) == (0, True), ran.err
        trial = shell.run(*source, "-o", tmp_path / "trial.jsonl", "--limit", "2")
        assert (trial.code, SENTENCE in trial.err) == (0, False)
    assert shell.run(folder, "-o", tmp_path / "ranked.jsonl").code == 0
    assert f"warning: {SENTENCE}" in shell.look("status").out.decode()
    page = batchrank("report", shell.store, "-o", "-").out.decode()
    assert "4 queries (&#39;w1&#39;, &#39;w2&#39;, &#39;w3&#39;, …) of the topics" in page


@pytest.mark.parametrize("form", ["trec", "csv", "parquet"])
def test_a_query_without_candidates_is_named_where_it_gets_no_row(
    shell: Shell, rows: list[Row], tmp_path: Path, form: str
) -> None:
    bare: Row = {"query": {"qid": "bare", "text": "who"}, "candidates": []}
    source = written(tmp_path / "in.jsonl", [*rows, bare])
    out = tmp_path / f"out.{form}"
    left_out = "line 4: There are no candidates, and so no row to write."
    converted = batchrank("convert", source, out, "--to", form)
    assert (converted.code, f"left out: {left_out}" in converted.err) == (2, True)
    assert "3 queries written, 1 left out" in converted.err
    out.unlink()
    ran = shell.run(source, "-o", out)
    assert ran.code == 0, ran.err
    assert left_out in ran.err
    assert "warning: 1 query ('bare'): there are no candidates" in ran.err
    assert (
        "1 row left out of the output" in batchrank("report", shell.store, "-o", "-").out.decode()
    )


def test_what_holds_no_row_at_all_replaces_no_file(shell: Shell, tmp_path: Path) -> None:
    bare: Row = {"query": {"qid": "bare", "text": "who"}, "candidates": []}
    source = written(tmp_path / "in.jsonl", [bare])
    out = tmp_path / "out.trec"
    out.write_text("yesterday's\n")
    ran = shell.run(source, "-o", out)
    exported = shell.look("export", "-o", out)
    for ended in (ran, exported):
        assert ended.code == 2
        assert "stays as it is, since trec can hold none of the 1 row (line 1: " in ended.err
    assert out.read_text() == "yesterday's\n"
    assert shell.look("export", "-o", tmp_path / "out.jsonl").code == 0
    (row,) = rows_of(tmp_path / "out.jsonl")
    assert (row["qid"], row["status"]) == ("bare", "unranked")
