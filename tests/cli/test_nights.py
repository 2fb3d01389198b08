"""Nights that are too short, and gates: what goes first, what is left, what is held back."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import orjson
import pytest

from batchrank.running.pace import Pace
from scripts.judge import JudgeConfig, JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import (
    Result,
    Row,
    batchrank,
    docids,
    gain,
    judge,
    requests,
    rows_of,
    serving,
    windows,
    written,
)

MINUTE = 60.0
SAME = (0, 0)
"""An input that is as it was."""
MONOTONIC = "batchrank.running.pace.monotonic"


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Shell, JudgeServer]]:
    """A shell in whose time a window takes a minute and nothing else takes any: 3 min a query."""
    with serving(judge(requests(queries=14, candidates=12))) as server:
        monkeypatch.setattr(MONOTONIC, lambda: len(windows(server)) * MINUTE)
        monkeypatch.setattr("batchrank.store.batcher.PATIENCE_SECONDS", 0.0)
        yield Shell(tmp_path, server.url), server


@pytest.fixture
def rows() -> list[Row]:
    """Ten queries, the weight of each its number but for the last, which has none (1)."""
    found = requests(queries=10, candidates=12)
    for number, row in enumerate(found[:9], 1):
        row["weight"] = number
    return found


def one_at_a_time(shell: Shell, *arguments: object, stdin: bytes = b"") -> Result:
    return shell.run(*arguments, "--concurrency", "1", "--json", stdin=stdin)


def ranked(shell: Shell) -> list[str]:
    """The qids that have their ranking."""
    text = shell.look("export").out
    return [row["qid"] for row in rows_of(text)]


def test_the_heaviest_go_first_and_what_is_left_out_goes_first_next_time(
    night: tuple[Shell, JudgeServer], source: Path, rows: list[Row]
) -> None:
    shell, server = night
    first = one_at_a_time(shell, source, "--time-limit", "14m")
    assert first.code == 75, first.err
    assert "the time that is left is not enough for another query" in first.err
    heaviest = ranked(shell)
    assert heaviest == [f"q{n}" for n in range(1, 10)][-len(heaviest) :]
    assert 2 <= len(heaviest) <= 8
    assert first.json["left"] == {
        "done": len(heaviest),
        "lines": 10,
        "weight_done": sum(int(qid[1:]) for qid in heaviest),
        "weight": 46.0,
        "is_read": True,
    }
    assert f"done so far: {len(heaviest)} of 10 queries, " in first.err
    assert not (shell.folder / "in.ranked.jsonl").exists()

    # New queries that weigh more come in; those that were left out still go before them.
    heavy = [{**row, "weight": 100} for row in requests(queries=14, candidates=12)[10:]]
    written(source, [*rows, *heavy])
    before = set(heaviest)
    left = {row["query"]["qid"] for row in rows} - before
    second = one_at_a_time(shell, source, "--time-limit", "10m")
    assert second.code == 75
    added = set(ranked(shell)) - before
    assert added
    assert added <= left or left <= added

    assert one_at_a_time(shell, source).code == 0
    assert len(rows_of(shell.folder / "in.ranked.jsonl")) == 14
    # Nothing was asked twice, whatever was stopped in between.
    assert len(windows(server)) == len(set(windows(server))) == 14 * 3


@pytest.mark.parametrize("kind", ["gz", "stdin"])
def test_packed_files_and_pipes_are_ordered_too(
    night: tuple[Shell, JudgeServer], tmp_path: Path, source: Path, kind: str
) -> None:
    shell, _ = night
    packed = tmp_path / "in.jsonl.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    given: tuple[Any, ...] = (packed,) if kind == "gz" else ("-", "-o", tmp_path / "out.jsonl")
    data = source.read_bytes() if kind == "stdin" else b""
    found = one_at_a_time(shell, *given, "--time-limit", "9m", stdin=data)
    assert found.code == 75, found.err
    done = sorted(ranked(shell), reverse=True)
    assert done == [f"q{n}" for n in range(9, 0, -1)][: len(done)]
    assert done
    names = {path.name for path in tmp_path.iterdir()}
    assert {name for name in names if not name.startswith(("in.", "store.", "out."))} == set()


def test_a_clock_deadline_that_has_passed_stays_passed_and_needs_no_server(
    night: tuple[Shell, JudgeServer], source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, server = night
    now = time.time()
    deadline = time.strftime("%H:%M", time.localtime(now + 60 * MINUTE))
    monkeypatch.setattr("batchrank.clock.time.time", lambda: now)
    # Half of the queries fit into the hour that is left at most, at 10 minutes a window.
    monkeypatch.setattr(MONOTONIC, lambda: len(windows(server)) * 10 * MINUTE)
    assert one_at_a_time(shell, source, "--deadline", deadline).code == 75
    now += 60 * MINUTE
    # By hand and with another deadline: it leaves the night what it was.
    by_hand = time.strftime("%H:%M", time.localtime(now + 60 * MINUTE))
    assert one_at_a_time(shell, source, "--deadline", by_hand).code == 75
    asked = len(server.calls)

    now += 2 * 60 * MINUTE
    again = one_at_a_time(shell, source, "--deadline", deadline)
    assert again.code == 75, again.err
    assert len(server.calls) == asked

    now += 20.5 * 60 * MINUTE  # the next night
    monkeypatch.setattr("batchrank.running.pace.monotonic", lambda: 0.0)
    assert one_at_a_time(shell, source, "--deadline", deadline).code == 0


def test_after_the_deadline_finished_work_is_still_written(
    night: tuple[Shell, JudgeServer], source: Path
) -> None:
    shell, server = night
    assert one_at_a_time(shell, source).code == 0
    output = shell.folder / "in.ranked.jsonl"
    expected = output.read_bytes()
    output.unlink()
    asked = len(server.calls)
    assert one_at_a_time(shell, source, "--time-limit", "0s").code == 0
    assert output.read_bytes() == expected
    assert len(server.calls) == asked


def test_optional_passes_are_dropped_where_time_runs_out_and_made_up_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = requests(queries=24, candidates=12)
    source = written(tmp_path / "in.jsonl", rows)
    passes = ("--passes", "forward,reverse")
    # By a clock it would depend on the machine how many queries are open at a time, and so which.
    short, told = cycle((False, True)), list[int]()

    def misses(_: Pace, unfinished: int) -> bool:
        told.append(unfinished)
        return next(short)

    monkeypatch.setattr(Pace, "misses", misses)
    with serving(judge(rows)) as server:
        shell = Shell(tmp_path, server.url)
        found = one_at_a_time(shell, source, *passes, "--time-limit", "9h", "--degrade")
        assert found.code == 0, found.err
        assert 12 < max(told) <= 24
        output = rows_of(tmp_path / "in.ranked.jsonl")
        reduced = [row["qid"] for row in output if row.get("reduced")]
        assert 0 < len(reduced) < 24
        assert found.json["reduced"] == len(reduced)
        assert f"for lack of time: {len(reduced)}" in found.err
        for row in output:
            assert sum(row["windows"].values()) == (3 if row.get("reduced") else 6)

        # What was dropped is shown as it was asked.
        seen = shell.look("inspect", reduced[0], "--json").json[0]
        assert len(seen["asked"]) == 3
        assert all(window["fault"] is None for window in seen["asked"])

        asked = len(windows(server))
        assert one_at_a_time(shell, source, *passes, "--time-limit", "9h", "--degrade").code == 0
        assert len(windows(server)) == asked  # they count as done, as long as passes may be dropped
        made_up = one_at_a_time(shell, source, *passes)
        assert made_up.code == 0
        # The other pass of each, and nothing else, is asked; the one that was there is not.
        assert changes_in(made_up) == SAME
        assert len(windows(server)) == asked + 3 * len(reduced)
        assert len(set(windows(server))) == len(windows(server))
    assert not any(row.get("reduced") for row in rows_of(tmp_path / "in.ranked.jsonl"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--degrade",), "needs a deadline"),
        (("--degrade", "--time-limit", "1h"), "has no pass to drop"),
        (("--deadline", "sunrise"), "no time of day"),
        (("--time-limit", "soon"), "no duration"),
        (("--gate-qrels", "absent.qrels"), "absent.qrels"),
        (("--min-overlap", "150%"), "min-overlap"),
    ],
)
def test_what_makes_no_sense_is_refused(
    shell: Shell, source: Path, flags: tuple[str, ...], said: str
) -> None:
    found = shell.run(source, *flags)
    assert found.code == 2
    assert said in found.err
    assert "Traceback" not in found.err


def changes_in(found: Result) -> tuple[int, int] | None:
    """What a run's summary tells of its input, in lines."""
    told = found.json["input_changes"]
    return told and (told["changed"], told["gone"])


def qrels(path: Path, rows: list[Row], *, upside_down: bool) -> Path:
    """Judgements by which the judge is right, or as wrong as can be."""
    lines = []
    for row in rows:
        qid = row["query"]["qid"]
        found = [candidate["docid"] for candidate in row["candidates"]]
        found.sort(key=lambda docid: gain(qid, docid), reverse=upside_down)
        lines += [f"{qid} 0 {docid} {grade}" for grade, docid in enumerate(found)]
    path.write_text("\n".join(lines))
    return path


def test_canaries_that_come_out_worse_stop_the_night(
    shell: Shell, server: JudgeServer, source: Path, rows: list[Row], tmp_path: Path
) -> None:
    judged = rows[5:9]
    bad = qrels(tmp_path / "bad.qrels", judged, upside_down=True)
    output = tmp_path / "in.ranked.jsonl"
    output.write_text("yesterday")
    found = shell.run(source, "--gate-qrels", bad)
    assert found.code == 3, found.err
    assert "the 4 judged queries came out worse than the first stage: mean nDCG@10 0." in found.err
    assert found.err.count("for example query q") == 3
    assert output.read_text() == "yesterday"
    # Only the judged ones were asked, and another start asks nothing.
    assert len(windows(server)) == 3 * 4
    assert shell.run(source, "--gate-qrels", bad).code == 3
    assert len(windows(server)) == 3 * 4

    good = qrels(tmp_path / "good.qrels", judged, upside_down=False)
    assert shell.run(source, "--gate-qrels", good).code == 0
    assert [row["qid"] for row in rows_of(output)] == [f"q{n}" for n in range(1, 11)]
    # Where all is finished the gate still holds.
    rejected = shell.run(source, "--gate-qrels", bad)
    assert rejected.code == 3
    assert Path(f"{output}.rejected").exists()


def test_canaries_that_are_not_there_judge_nothing(
    shell: Shell, source: Path, tmp_path: Path
) -> None:
    strangers = tmp_path / "other.qrels"
    strangers.write_text("q99 0 d1 1\n")
    found = shell.run(source, "--gate-qrels", strangers)
    assert found.code == 2
    assert "none of the queries of --gate-qrels is in the input" in found.err


@pytest.mark.parametrize(
    ("line", "said", "asks"),
    [
        ("q1 0 {} 0\n", "is relevant (a grade above 0)", False),
        ("q1 0 {} -1\n", "is relevant (a grade above 0)", False),
        ("q1 0 another-name 2\n", "no candidate in the input is relevant by --gate-qrels", True),
    ],
)
def test_a_gate_that_nothing_could_fail_is_refused(
    shell: Shell,
    server: JudgeServer,
    source: Path,
    rows: list[Row],
    tmp_path: Path,
    line: str,
    said: str,
    asks: bool,
) -> None:
    judged = tmp_path / "judged.qrels"
    judged.write_text(line.format(rows[0]["candidates"][0]["docid"]))
    found = shell.run(source, "--gate-qrels", judged)
    assert (found.code, said in found.err) == (2, True), found.err
    assert len(windows(server)) == (3 if asks else 0)  # those of the one judged query at most


def test_a_night_that_is_out_of_line_is_held_back(
    shell: Shell, source: Path, rows: list[Row], tmp_path: Path
) -> None:
    output = tmp_path / "in.ranked.jsonl"
    gate = ("--min-overlap", "80%", "--depth", "12")
    assert shell.run(source, *gate).code == 0  # the first has nothing to be compared with
    accepted = output.read_bytes()
    assert shell.run(source, *gate).code == 0

    # Half of the queries now have other candidates, so their top 10 can't be the same.
    changed = orjson.loads(orjson.dumps(rows))
    for row in changed[:5]:
        for candidate in row["candidates"]:
            candidate["docid"] = f"new-{candidate['docid']}"
    written(source, changed)
    found = shell.run(source, *gate)
    assert found.code == 3, found.err
    assert "the top 10 of 10 queries share 50.0% with run 2" in found.err
    assert "--min-overlap asks for 80.0%" in found.err
    assert found.err.count(": 0 of 10 are the same; best new-q") == 3
    assert output.read_bytes() == accepted
    assert docids(rows_of(Path(f"{output}.rejected"))[0])[0].startswith("new-")
    # Compared is with what was accepted, not with what was held back.
    assert shell.run(source, *gate).code == 3
    assert shell.run(source, "--min-overlap", "50%", "--depth", "12").code == 0
    assert shell.run(source, *gate).code == 0


@pytest.mark.parametrize(
    ("job", "again"),
    [
        ("", "--fresh"),
        ("", "--retry-fallbacks"),
        ("--incremental", ""),
        ("--time-limit 9h --passes forward,reverse --degrade", ""),
    ],
)
def test_what_is_new_in_an_input_is_told_by_its_lines_however_they_are_ranked(
    tmp_path: Path, rows: list[Row], job: str, again: str
) -> None:
    source = tmp_path / "in.jsonl"
    with serving(JudgeServer(JudgeConfig(malformed_rate=0.2, sound_trials=True))) as server:
        shell = Shell(tmp_path, server.url)

        def told(rows: list[Row], flags: str) -> object:
            written(source, rows)
            given = (*job.split(), *flags.split())
            found = shell.run(source, "--max-fallback", "1", "--json", *given)
            assert found.code == 0, found.err
            return changes_in(found)

        assert told(rows, "") is None
        assert told(rows, again) == SAME
        moved = [rows[1], rows[0], {**rows[2], "weight": 7}, *rows[4:]]
        assert told(moved, again) == (1, 1)
        assert told(moved, "") == SAME
        # Other settings are another job, which never saw this input.
        assert told(moved, "--depth 11") is None
        assert told(moved, "") == SAME


def test_changed_and_missing_lines_are_told(shell: Shell, source: Path, rows: list[Row]) -> None:
    assert "the input since" not in shell.run(source).err
    changed = [{**rows[0], "weight": 7}, *rows[1:8], *requests(11, 12)[10:]]
    written(source, changed)
    found = shell.run(source)
    assert found.code == 0
    assert "the input since run 1: 2 changed or new lines, 2 no longer there" in found.err
    assert "the input since" not in shell.run(source).err
    # The next night's file has another name, and is compared all the same.
    tomorrow = written(source.with_name("log-2026-12-01.jsonl"), [*changed[:-1], rows[-1]])
    found = shell.run(tomorrow)
    said = f"the input since run 3 ({source}): 1 changed or new lines, 1 no longer there"
    assert said in found.err
    assert "the input since" not in shell.run(source).err


@pytest.mark.parametrize(("malformed", "publishable"), [(0.0, True), (1.0, False)])
def test_what_a_short_night_did_is_judged_by_the_gates_before_it_may_be_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, malformed: float, publishable: bool
) -> None:
    rows = requests(queries=10, candidates=12)
    source = written(tmp_path / "in.jsonl", rows)
    bad = judge(rows, malformed_rate=malformed, malformed=("empty",), sound_trials=True)
    with serving(bad) as server:
        monkeypatch.setattr(MONOTONIC, lambda: len(windows(server)) * MINUTE)
        monkeypatch.setattr("batchrank.store.batcher.PATIENCE_SECONDS", 0.0)
        shell = Shell(tmp_path, server.url)
        ended = one_at_a_time(shell, source, "--time-limit", "14m")
    assert ended.code == 75, ended.err
    assert ended.json["publishable"] == publishable, str(ended.json)
    assert any("--max-fallback" in reason for reason in ended.json["reasons"]) != publishable
    target = f"jsonl:{tmp_path / 'cache.jsonl'}"
    published = batchrank("publish", shell.store, target, "--status", "ok,degraded")
    assert published.code == (0 if publishable else 3)
