"""An input that is ranked in shards, on machines that share nothing, ends as if ranked at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.backends.discovery import Found, Place, look
from batchrank.errors import UsageError
from batchrank.formats.lines import RawLine
from batchrank.formats.sharding import of_shard
from batchrank.results.filenames import name_of_part
from batchrank.spec.shard import parse_shard
from batchrank.store.lock import store_lock
from batchrank.store.schema import VERSION
from batchrank.values import Shard
from scripts.judge import JudgeServer
from tests.cli.running import Result, Row, batchrank, judge, requests, serving, windows, written

ROWS = requests(queries=12, candidates=8)
UNUSABLE: list[Row | bytes] = [b"not json", b'{"query": {"qid": "half"}}', b"[]", b"{}"]
TWICE = {**ROWS[0], "candidates": ROWS[0]["candidates"][:5]}
"""The qid of another line with other content: it fails, and names that line."""
INPUT: list[Row | bytes] = [UNUSABLE[0], *ROWS[:5], *UNUSABLE[1:], *ROWS[5:], TWICE, ROWS[3]]
SMALL = ("--window-size", "4", "--max-failed", "100%")


class Night:
    """One input, ranked at once or in shards, each with a store of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.source = written(folder / "in.jsonl", INPUT)
        self.joined = folder / "joined.sqlite"

    def run(self, store: str, *more: object) -> Result:
        where = ("--store", self.folder / store, "--base-url", self.url)
        return batchrank("run", self.source, *where, *SMALL, *more)

    def shard(self, shard: str, *more: object) -> Path:
        """Rank one shard; its store."""
        store = f"shard-{shard.replace('/', '-of-')}.sqlite"
        found = self.run(store, "--shard", shard, *more)
        assert found.code == 0, found.err
        return self.folder / store

    def shards(self, count: int, *more: object) -> list[Path]:
        return [self.shard(f"{index}/{count}", *more) for index in range(count)]

    def merge(self, stores: Sequence[Path]) -> Result:
        return batchrank("merge-stores", *stores, "-o", self.joined)

    def at_once(self, *more: object) -> bytes:
        """The output of a run that knows nothing of shards."""
        target = self.folder / "whole.jsonl"
        found = self.run("whole.sqlite", "-o", target, *more)
        assert found.code == 0, found.err
        return target.read_bytes()

    def from_joined(self, *more: object) -> tuple[dict[str, Any], bytes]:
        """The summary and the output of a run about the whole input that has the joined store."""
        target = self.folder / "from-joined.jsonl"
        found = self.run(self.joined.name, "-o", target, "--json", *more)
        assert found.code == 0, found.err
        return found.json, target.read_bytes()


@pytest.fixture
def server() -> Any:
    with serving(judge(ROWS)) as running:
        yield running


@pytest.fixture
def night(tmp_path: Path, server: JudgeServer) -> Night:
    return Night(tmp_path, server.url)


def lines(rows: Sequence[bytes]) -> list[RawLine]:
    return [RawLine(number, data) for number, data in enumerate(rows, 1)]


QIDS = st.one_of(st.text(min_size=1), st.integers(0, 10**6))
LINES = st.one_of(
    st.binary(max_size=30).filter(lambda data: b"\n" not in data),
    st.builds(
        lambda qid, text: orjson.dumps({"query": {"qid": qid, "text": text}, "candidates": []}),
        QIDS,
        st.text(max_size=5),
    ),
)


@given(st.lists(LINES, max_size=20), st.integers(1, 9))
def test_every_line_is_in_one_shard_and_lines_of_one_qid_in_the_same(
    rows: list[bytes], count: int
) -> None:
    found = [
        [line for block in of_shard(iter([lines(rows)]), Shard(index, count)) for line in block]
        for index in range(count)
    ]
    assert sorted((line for part in found for line in part), key=lambda line: line.number) == (
        lines(rows)
    )
    assert all(part == sorted(part, key=lambda line: line.number) for part in found)


def test_a_qid_stays_in_its_shard_wherever_and_with_whatever_it_stands() -> None:
    def shard_of(*rows: bytes) -> list[int]:
        return [
            index
            for row in rows
            for index in range(7)
            if any(row == line.data for block in of_shard(iter([lines(rows)]), Shard(index, 7))
                   for line in block)
        ]  # fmt: skip

    beside = b'{"qid": "q9", "query": "x", "candidates": ["other"]}'
    inside = b'{"query": {"qid": "q9", "text": "y"}, "candidates": []}'
    as_number = b'{"query": {"qid": 9, "text": "y"}}'
    as_text = b'{"query": {"qid": "9", "text": "z"}, "hits": 3}'
    a, b, c, d = shard_of(beside, inside, as_number, as_text)
    assert (a, c) == (b, d)
    assert shard_of(inside, as_text, b"not json", as_number, beside)[-1] == a
    # Written down, since stores of older batchranks have to fit those of newer ones.
    assert shard_of(*(b'{"query": {"qid": "q%d", "text": "t"}}' % n for n in range(9))) == (
        [4, 1, 3, 3, 1, 2, 4, 2, 5]
    )


@pytest.mark.parametrize("text", ["0/1", " 3/8 ", "007/100"])
def test_a_shard_is_read(text: str) -> None:
    shard = parse_shard(text)
    assert (shard.index, shard.count) == tuple(map(int, text.split("/")))


@pytest.mark.parametrize("text", ["", "1", "8/8", "-1/8", "0/0", "1/2/3", "a/b", "1.0/2", "²/3"])
def test_what_is_no_shard_is_refused(text: str, night: Night) -> None:
    with pytest.raises(UsageError, match="i/n"):
        parse_shard(text)
    assert night.run("no.sqlite", "--shard", text).code == 2
    assert not (night.folder / "no.sqlite").exists()


@pytest.mark.parametrize("count", [1, 3, 40])
def test_joined_shards_end_as_a_run_at_once(night: Night, server: JudgeServer, count: int) -> None:
    stores = night.shards(count)
    asked = len(windows(server))
    found = night.merge(stores)
    assert (found.code, found.err) == (0, "")
    assert str(night.joined) in found.out.decode()
    summary, output = night.from_joined()
    assert (summary["calls"], summary["already_finished"]) == (0, len(ROWS) + 1)
    assert len(windows(server)) == asked
    assert output == night.at_once()
    # Nothing is paid for twice: what shards ask together is what one run asks.
    assert len(windows(server)) == 2 * asked
    assert night.joined.stat().st_mode & 0o077 == 0


def test_a_shard_writes_its_own_lines_with_their_numbers_beside_the_input(night: Night) -> None:
    whole = [orjson.loads(line) for line in night.at_once().splitlines()]
    found = []
    for index in range(2):
        night.shard(f"{index}/2")
        part = night.folder / f"in.ranked.{index}-of-2.jsonl"
        found += [orjson.loads(line) for line in part.read_bytes().splitlines()]
        assert orjson.loads(Path(f"{part}.summary.json").read_bytes())["exit_code"] == 0
    # Rows of failed lines say which lines of the whole input they are.
    assert sorted(map(orjson.dumps, found)) == sorted(map(orjson.dumps, whole))
    told = batchrank("status", "--store", night.folder / "shard-1-of-2.sqlite").out.decode()
    assert "(shard 1/2)" in told


def test_formats_other_than_lines_are_split_too(night: Night) -> None:
    written(night.folder / "in.json", [orjson.dumps(ROWS)])
    night.source = night.folder / "in.json"
    night.merge(night.shards(2))
    summary, output = night.from_joined()
    assert summary["calls"] == 0
    assert output == night.at_once()


def test_a_joined_store_can_be_looked_at_before_any_run(night: Night) -> None:
    whole = night.at_once()
    night.merge(night.shards(2))
    exported = batchrank("export", "--store", night.joined)
    assert (exported.out, exported.err) == (whole, "")
    seen = batchrank("inspect", "q2", "--store", night.joined, "--json")
    assert seen.code == 0, seen.err
    told = batchrank("status", "--store", night.joined).out.decode()
    assert "joined from 2 shards, not judged yet" in told
    assert "`batchrank run` on the whole input goes on with it" in told
    assert not any(word in told for word in ("killed", "stopped early"))


@pytest.mark.parametrize("whole", [True, False])
def test_a_run_that_names_no_server_has_the_one_of_the_joined_store_or_refuses(
    night: Night, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    stores = night.shards(2)
    night.merge(stores if whole else stores[:1])
    same = ("run", night.source, "--store", night.joined, *SMALL)
    seen = batchrank(*same, "--dry-run", "--json")
    assert (seen.json["known"] > len(ROWS)) == whole
    assert seen.json["known"] > 0
    with serving(judge(ROWS, model="another")) as other:
        place = Place("a judge", other.url)

        async def found() -> tuple[Found, ...]:
            return await look((place,))

        monkeypatch.setattr("batchrank.serving.connection.discover", found)
        ended = batchrank(*same)
        asked = len(windows(other))
        named = batchrank(*same, "--base-url", other.url)
    assert asked == 0
    assert named.code == 0
    told = "of this input by judge; this is another job (it differs in identity, model)"
    assert told in named.err
    if whole:
        assert ended.code == 0, ended.err
    else:
        assert ended.code == 4
        assert "serves another" in ended.err
        assert "--base-url" in ended.err


def test_merging_leaves_the_stores_as_they_were(night: Night) -> None:
    def state() -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in night.folder.iterdir()
            if path != night.joined and not path.name.endswith(".lock")
        }

    stores = night.shards(2)
    before = state()
    assert night.merge(stores).code == 0
    assert state() == before


def test_every_window_of_joined_rankings_can_be_replayed(night: Night) -> None:
    night.at_once()
    night.merge(night.shards(3))
    for qid in ("q2", "q7", "q12"):
        one, other = (
            batchrank("inspect", qid, "--json", "--store", store).json[0]
            for store in (night.joined, night.folder / "whole.sqlite")
        )
        for window in (*one["asked"], *other["asked"]):
            del window["answer"]["seconds"]
        assert one == other


def test_what_is_missing_is_said_and_asked_for_by_the_next_run(
    night: Night, server: JudgeServer
) -> None:
    stores = night.shards(3)
    asked = len(windows(server))
    found = night.merge([stores[0], stores[2]])
    assert found.code == 0
    assert "warning: a shard is missing: '1/3'" in found.err
    exported = batchrank("export", "--store", night.joined)
    count = len(exported.out.splitlines())
    assert exported.code == 0
    (warning,) = exported.err.splitlines()
    assert f"is incomplete: {count} of its {count} queries are ranked, and not all" in warning
    assert "a shard is missing" in batchrank("status", "--store", night.joined).out.decode()
    summary, output = night.from_joined()
    assert 0 < summary["calls"] < asked
    assert output == night.at_once()


def test_a_stopped_shard_gives_what_it_has(night: Night, server: JudgeServer) -> None:
    first = night.shard("0/2")
    stopped = night.run("stopped.sqlite", "--shard", "1/2", "--time-limit", "0s")
    assert stopped.code == 75
    found = night.merge([first, night.folder / "stopped.sqlite"])
    assert found.code == 0
    assert "shard 1/2 (stopped.sqlite) ended with exit code 75" in found.err
    summary, output = night.from_joined()
    assert summary["calls"] > 0
    assert output == night.at_once()


def test_a_killed_shard_gives_the_answers_it_paid_for(night: Night, server: JudgeServer) -> None:
    first, second = night.shards(2)
    with closing(sqlite3.connect(second)) as store:
        # As a kill leaves it: no end of the run, answers whose queries are not finished.
        store.execute("UPDATE runs SET ended = NULL, exit = NULL, summary = NULL, lines = NULL")
        store.execute("DELETE FROM rankings WHERE qid = (SELECT max(qid) FROM rankings)")
        store.commit()
    found = night.merge([first, second])
    assert "was killed" in found.err
    assert "1 line has no ranking yet" in found.err
    exported = batchrank("export", "--store", night.joined)
    count = len(exported.out.splitlines())
    assert f"is incomplete: {count} of its {count + 1} queries are ranked" in exported.err
    summary, output = night.from_joined()
    assert summary["calls"] == 0
    assert output == night.at_once()


def test_a_rejected_shard_is_said_and_the_whole_is_judged_by_itself(night: Night) -> None:
    stores = [night.shard("0/2", "--max-failed", "100%")]
    strict = night.run("strict.sqlite", "--shard", "1/2", "--max-failed", "0")
    assert strict.code == 3
    found = night.merge([*stores, night.folder / "strict.sqlite"])
    assert found.code == 0
    assert "shard 1/2 (strict.sqlite) was rejected: " in found.err
    assert "--max-failed allows" in found.err
    rejected = night.run(night.joined.name, "--max-failed", "0")
    assert rejected.code == 3
    summary, output = night.from_joined()
    assert summary["calls"] == 0
    assert output == night.at_once()


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (("0/2",), ("1/2", "--window-size", "6"), "different jobs"),
        (("0/2",), ("1/2", "--max-doc-tokens", "9"), "max_doc_tokens is 200 and 9"),
        (("0/2",), ("1/3",), "split into 2 shards for one and into 3"),
        (("0/2",), ("0/2",), "both hold shard 0/2"),
    ],
)
def test_stores_that_do_not_belong_together_are_refused(
    night: Night, first: Sequence[str], second: Sequence[str], told: str
) -> None:
    for store, (shard, *more) in (("a.sqlite", first), ("b.sqlite", second)):
        assert night.run(store, "--shard", shard, *more).code == 0
    found = night.merge([night.folder / "a.sqlite", night.folder / "b.sqlite"])
    assert found.code == 2
    assert told in found.err
    assert len(found.err.splitlines()) == 1
    assert not night.joined.exists()
    assert not list(night.folder.glob(".*partial*"))


def test_shards_of_inputs_that_differ_are_refused(night: Night) -> None:
    first = night.shard("0/2")
    written(night.source, [*ROWS[::-1], *UNUSABLE])
    second = night.shard("1/2")
    found = night.merge([first, second])
    assert found.code == 2
    assert "different inputs" in found.err
    assert not night.joined.exists()


def test_a_store_of_a_newer_version_is_refused(night: Night) -> None:
    first, second = night.shards(2)
    with closing(sqlite3.connect(second)) as store:
        store.execute(f"PRAGMA user_version = {VERSION + 1}")
    found = night.merge([first, second])
    assert found.code == 2
    assert "newer batchrank" in found.err
    assert not night.joined.exists()


def test_nothing_is_written_over_or_taken_from_a_run(night: Night) -> None:
    first, second = night.shards(2)
    assert night.merge([first, first]).code == 2
    assert night.merge([first, night.folder / "none.sqlite"]).code == 2
    assert night.merge([first, written(night.folder / "text", ROWS)]).code == 2
    with store_lock(second):
        assert night.merge([first, second]).code == 1
    assert night.merge([first, second]).code == 0
    before = night.joined.read_bytes()
    again = night.merge([first, second])
    assert again.code == 2
    assert "is there already" in again.err
    assert night.joined.read_bytes() == before
    assert batchrank("merge-stores", first, "-o", first).code == 2


def test_shards_that_began_afresh_join_too(night: Night, server: JudgeServer) -> None:
    first, second = night.shards(2)
    night.shard("1/2", "--fresh")
    asked = len(windows(server))
    assert night.merge([first, second]).code == 0
    summary, output = night.from_joined()
    assert summary["calls"] == 0
    assert len(windows(server)) == asked
    assert output == night.at_once()


def test_one_store_may_hold_several_shards(night: Night) -> None:
    for index in range(3):
        assert night.run("one.sqlite", "--shard", f"{index}/3").code == 0
    found = night.merge([night.folder / "one.sqlite"])
    assert (found.code, found.err) == (0, "")
    assert batchrank("export", "--store", night.joined).out == night.at_once()


def test_answers_that_differ_stay_with_the_rankings_that_rest_on_them(night: Night) -> None:
    """Two shards ask the same windows, and the model does not say the same twice."""
    twins = [
        {**ROWS[0], "query": {"qid": f"twin{n}", "text": ROWS[0]["query"]["text"]}}
        for n in range(8)
    ]
    written(night.source, twins)
    first, second = night.shards(2)
    with closing(sqlite3.connect(second)) as other_answers:
        other_answers.execute("UPDATE answers SET reasoning = CAST('otherwise' AS BLOB)")
        other_answers.commit()
    assert night.merge([first, second]).code == 0
    for store in (first, second):
        told = batchrank("export", "--store", store).out.splitlines()
        for qid in (orjson.loads(row)["qid"] for row in told):
            one, other = (
                batchrank("inspect", qid, "--json", "--store", path)
                for path in (store, night.joined)
            )
            assert (one.code, one.out) == (other.code, other.out), other.err
    summary, _ = night.from_joined()
    assert summary["calls"] == 0


def test_judged_queries_may_all_be_in_another_shard(night: Night) -> None:
    qrels = night.folder / "judged.qrels"
    qrels.write_text("q1 0 q1-d8 1\n")
    codes = {
        night.run(f"{index}.sqlite", "--shard", f"{index}/2", "--gate-qrels", qrels).code
        for index in range(2)
    }
    assert codes <= {0, 3}


@pytest.mark.parametrize(
    ("output", "of_part"),
    [
        ("night.jsonl", "night.3-of-8.jsonl"),
        ("a.b/night", "a.b/night.3-of-8"),
        ("log-2026.11.30.trec.gz", "log-2026.11.30.3-of-8.trec.gz"),
        ("/x/.hidden", "/x/.hidden.3-of-8"),
        ("-", "-"),
    ],
)
def test_shards_that_name_one_output_write_files_of_their_own(output: str, of_part: str) -> None:
    assert name_of_part(output, Shard(3, 8)) == of_part
    assert name_of_part(output, None) == output


def test_a_shard_publishes_nothing_and_the_whole_does(night: Night) -> None:
    cache = night.folder / "cache.sqlite"
    spec = night.folder / "night.toml"
    spec.write_text(f'[publish]\ntarget = "sqlite:{cache}"\n')
    stores = night.shards(2, "--job", spec)
    assert not cache.exists()
    night.merge(stores)
    summary, _ = night.from_joined("--job", spec)
    assert "publish" in summary["steps"]
    assert cache.exists()
