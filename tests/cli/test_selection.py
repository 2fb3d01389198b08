"""What a job selects, end to end: in its rows, in what it asks, in what is replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, batchrank, docids, gain, rows_of, windows, written

FILTER = """
[filter]
min_score = 2
deny = { source = ["forum"] }
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job spec that removes the last candidate of a query and those of a forum."""
    path = tmp_path / "job.toml"
    path.write_text(FILTER)
    return path


@pytest.fixture
def mixed(tmp_path: Path, rows: list[Row]) -> Path:
    """`rows`, where every third candidate is of a forum and one query has no other."""
    for row in rows:
        for place, candidate in enumerate(row["candidates"]):
            if place % 3 == 1 or row is rows[2]:
                candidate["metadata"] = {"source": "forum"}
    return written(tmp_path / "in.jsonl", rows)


def test_what_is_filtered_is_not_asked_and_stands_below_with_the_reason(
    shell: Shell, server: JudgeServer, mixed: Path, job: Path, tmp_path: Path
) -> None:
    told = shell.run(mixed, "--job", job, "--dry-run", "--json")
    ended = shell.run(mixed, "--job", job, "-o", tmp_path / "out.jsonl", "--json")

    assert ended.code == 0, ended.err
    assert told.json["calls"] == ended.json["calls"] == len(windows(server))
    first, second, nothing = rows_of(tmp_path / "out.jsonl")
    gone = {2: "deny.source", 5: "deny.source", 8: "deny.source"}
    gone |= {11: "min_score", 12: "min_score"}
    for row in (first, second):
        below = row["ranking"][7:]
        assert {one["first_stage_rank"]: one["filtered"] for one in below} == gone
        assert [one["first_stage_rank"] for one in below] == sorted(gone)
        assert not any("filtered" in one for one in row["ranking"][:7])
        assert len({*docids(row)}) == 12
        best = max(docids(row)[:7], key=lambda docid: gain(row["qid"], docid))
        assert docids(row)[0] == best
        assert not any(f"of row {place}." in body for body in windows(server) for place in gone)
    assert nothing["status"] == "unranked"
    assert [one["first_stage_rank"] for one in nothing["ranking"]] == list(range(1, 13))


def test_windows_of_a_filtered_query_are_replayed(
    shell: Shell, server: JudgeServer, mixed: Path, job: Path, tmp_path: Path
) -> None:
    shell.run(mixed, "--job", job, "-o", tmp_path / "out.jsonl", "--mmr", "0.5", "--alpha", "0.5")
    (row, *_) = rows_of(tmp_path / "out.jsonl")

    seen = shell.look("inspect", "q1", "--json").json[0]
    text = shell.look("inspect", "q1").out.decode()

    assert docids(seen) == docids(row)
    asked = {docid for one in seen["asked"] for docid in one["window"]["shown"]}
    assert asked == {*docids(row)[:7]}
    assert all(one["permutation"]["status"] == "ok" for one in seen["asked"])
    assert len(seen["asked"]) == len(windows(server)) / 2
    assert "(was  12)  q1-d12  (filtered: min_score)" in text


def test_another_order_of_the_same_answers_takes_no_call(
    shell: Shell, server: JudgeServer, source: Path, tmp_path: Path
) -> None:
    plain, mixed, first_stage = (tmp_path / name for name in ("plain", "mixed", "first"))
    assert shell.run(source, "-o", plain).code == 0
    calls = len(windows(server))

    assert shell.run(source, "-o", mixed, "--alpha", "0.5", "--normalise", "min-max").code == 0
    assert shell.run(source, "-o", first_stage, "--alpha", "0").code == 0

    assert len(windows(server)) == calls
    orders = [[docids(row) for row in rows_of(path)] for path in (plain, mixed, first_stage)]
    assert orders[0] != orders[1] != orders[2]
    assert orders[2] == [[f"q{n}-d{place}" for place in range(1, 13)] for n in (1, 2, 3)]


def test_an_incremental_night_builds_on_what_was_filtered_alike(
    shell: Shell, server: JudgeServer, mixed: Path, job: Path, tmp_path: Path, rows: list[Row]
) -> None:
    night = ("--job", job, "--incremental", "--json", "-o", tmp_path / "out.jsonl")
    shell.run(mixed, *night)
    before = rows_of(tmp_path / "out.jsonl")[0]
    calls = len(windows(server))
    rows[0]["candidates"].pop(0)
    changed = written(tmp_path / "changed.jsonl", rows)

    ended = shell.run(changed, *night)

    assert (ended.json["incremental"], len(windows(server))) == (1, calls)
    after = rows_of(tmp_path / "out.jsonl")[0]
    assert docids(after) == [docid for docid in docids(before) if docid != "q1-d1"]


def test_what_can_not_be_had_together_is_refused(source: Path) -> None:
    ended = batchrank("run", source, "--incremental", "--mmr", "0.5")
    assert ended.code == 2
    assert "incremental builds on the model's own order" in ended.err


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ('deny = { sorce = ["forum"] }', "metadata key 'sorce'; did you mean 'source'?"),
        ('allow = { sorce = ["wiki"] }', "metadata key 'sorce'; did you mean 'source'?"),
        ('time = { key = "day", from = 2024-01-01 }', "metadata key 'day'"),
        ('language = ["en"]', "metadata key 'language'"),
        ('allow = { source = ["wiky"] }', "the filter leaves no candidate"),
    ],
)
def test_a_filter_that_finds_nothing_is_warned_of(
    shell: Shell, mixed: Path, tmp_path: Path, condition: str, said: str
) -> None:
    job = tmp_path / "job.toml"
    job.write_text(f"[filter]\n{condition}\n")
    checked = batchrank("check", mixed, "--job", job)
    assert checked.code == 0
    assert said in checked.out.decode()
    command = (mixed, "--job", job, "-o", tmp_path / "out.jsonl", "--json")
    ended = shell.run(*command)
    assert ended.code == 0
    assert any(said in warning for warning in ended.json["warnings"])
    assert said in ended.err
    # The next night has read no query anew, and so has nothing to say of its keys.
    again = shell.run(*command).json["warnings"]
    assert not any("metadata key" in warning for warning in again)


def test_a_filter_that_finds_something_says_nothing(
    shell: Shell, mixed: Path, job: Path, tmp_path: Path
) -> None:
    ended = shell.run(mixed, "--job", job, "-o", tmp_path / "out.jsonl", "--json")
    assert not any("metadata key" in warning for warning in ended.json["warnings"])
    assert batchrank("check", mixed, "--job", job, "--json").json["filter"] == []


def test_a_number_denies_the_text_of_a_table(shell: Shell, tmp_path: Path) -> None:
    lines = [f"q1,who tends garden number 1,q1-d{n},Leaf {n},{2018 + n % 2}" for n in range(1, 5)]
    source = tmp_path / "in.csv"
    source.write_text("\n".join(["qid,query,docid,text,year", *lines]) + "\n")
    job = tmp_path / "job.toml"
    job.write_text("[filter]\ndeny = { year = [2019] }\n")
    ended = shell.run(source, "--job", job, "-o", tmp_path / "out.jsonl", "--max-fallback", "100%")
    assert ended.code == 0, ended.err
    (row,) = rows_of(tmp_path / "out.jsonl")
    assert {one["docid"] for one in row["ranking"] if "filtered" in one} == {"q1-d1", "q1-d3"}


@pytest.mark.parametrize(
    ("embeddings", "said"),
    [
        ([[1, 0], [0, 1, 2]], ["not all of the reranked have an embedding of one length"]),
        ([[1, 0], None], ["not all of the reranked have an embedding of one length"]),
        (
            [[1, 0], ["0", "1"]],
            ["an embedding is no list", "not all of the reranked have an embedding"],
        ),
        ([["1", "2"], ["0", "1"]], ["an embedding is no list"]),
        ([[1, 0], [0, 1]], []),
        ([None, None], []),
    ],
)
def test_embeddings_that_can_not_be_compared_are_warned_of(
    shell: Shell, tmp_path: Path, rows: list[Row], embeddings: list[object], said: list[str]
) -> None:
    for row in rows[:2]:
        for place, candidate in enumerate(row["candidates"]):
            candidate["embedding"] = embeddings[place % 2]
    source = written(tmp_path / "in.jsonl", rows)
    ended = shell.run(source, "--mmr", "0.7", "-o", tmp_path / "out.jsonl", "--json")
    assert ended.code == 0, ended.err
    found = [one for one in ended.json["warnings"] if "embedding" in one]
    assert len(found) == len(said)
    for warning, words in zip(found, said, strict=True):
        assert warning.startswith("2 queries ('q1', 'q2'): ")
        assert words in warning
