"""The commands that try jobs read every input that `run` reads, and have the flags they advise."""

from __future__ import annotations

from pathlib import Path

import pytest

from batchrank.spec.loading import load_spec
from batchrank.store.lock import store_lock
from tests.choosing.conftest import asked
from tests.cli.running import Row, batchrank, judge, serving

COMMANDS = {
    "diagnose": (),
    "tune": ("--qrels", "qrels", "--grid", "grid.toml"),
    "label": ("-o", "weak.qrels"),
    "compare": ("run.trec", "run.trec", "--noise"),
}
TEXTS = ("--corpus", "corpus.tsv", "--topics", "topics.tsv")


@pytest.fixture
def run_file(rows: list[Row], judged: Path) -> Path:
    """The rows as a TREC run beside its texts."""
    assert judged.name == "qrels"
    Path("grid.toml").write_text("[[try]]\ndepth = 12\n")
    queries = {row["query"]["qid"]: row["query"]["text"] for row in rows}
    Path("topics.tsv").write_text("".join(f"{qid}\t{text}\n" for qid, text in queries.items()))
    found = [(row["query"]["qid"], one) for row in rows for one in row["candidates"]]
    texts = {one["docid"]: one["doc"]["text"] for _, one in found}
    Path("corpus.tsv").write_text("".join(f"{docid}\t{text}\n" for docid, text in texts.items()))
    lines = [f"{qid} Q0 {one['docid']} 1 {one['score']} bm25\n" for qid, one in found]
    Path("run.trec").write_text("".join(lines))
    return Path("run.trec")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_with_its_texts_is_tried(rows: list[Row], run_file: Path, command: str) -> None:
    given = [command, *COMMANDS[command], run_file, "--sample", 2]
    with serving(judge(rows)) as server:
        at = ("--base-url", server.url)
        # What the refusal advises, which every call of the tests sees that the command has ...
        refused = batchrank(*given, *at)
        assert (refused.code, "name them with --corpus and --topics" in refused.err) == (2, True)
        # ... helps.
        asked(*map(str, given), *TEXTS, *at)
        if command == "tune":
            asked("run", run_file, "--job", "tuned.toml")
    if command == "tune":
        assert load_spec(Path("tuned.toml"), {}).corpus == Path("corpus.tsv")


@pytest.mark.parametrize("command", ["tune", "label"])
def test_what_is_read_with_a_run_is_not_written_over(run_file: Path, command: str) -> None:
    given = [*COMMANDS[command], "-o", "corpus.tsv"]
    result = batchrank(command, run_file, *given, *TEXTS, "--base-url", "http://127.0.0.1:9")
    assert (result.code, "is the corpus: choose another" in result.err) == (2, True), result.err


@pytest.mark.parametrize("command", ["diagnose", "tune", "label"])
def test_a_store_in_use_can_be_waited_for_or_left_alone(
    source: Path, run_file: Path, command: str
) -> None:
    given = (command, source, *COMMANDS[command], "--base-url", "http://127.0.0.1:9")
    with store_lock(Path("batchrank-trials.sqlite")):
        result = batchrank(*given)
        assert (result.code, "--wait-for-lock" in result.err) == (1, True), result.err
        assert batchrank(*given, "--store", "other.sqlite").code == 4


@pytest.mark.parametrize("command", COMMANDS)
def test_a_gone_server_is_waited_for_as_long_as_is_said(
    source: Path, run_file: Path, command: str
) -> None:
    flags = ("--wait-for-server", "soon", "--base-url", "http://127.0.0.1:9")
    result = batchrank(command, *COMMANDS[command], source, *flags)
    assert (result.code, "'soon'" in result.err) == (2, True), result.err
