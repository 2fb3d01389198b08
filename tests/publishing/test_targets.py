"""`batchrank publish` to targets of every kind: what is written, kept, and refused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from batchrank.formats.atomic import AtomicFile
from tests.cli.running import batchrank
from tests.publishing.conftest import Nights, key
from tests.publishing.servers import RedisServer

KINDS = ("sqlite", "jsonl", "parquet")


@pytest.fixture(params=KINDS)
def files(request: pytest.FixtureRequest, store: Path, tmp_path: Path) -> Nights:
    """A store, and a file of each kind to publish to."""
    return Nights(store, f"{request.param}:{tmp_path / 'cache'}")


@pytest.fixture(params=(*KINDS, "redis"))
def nights(request: pytest.FixtureRequest, store: Path, tmp_path: Path) -> Nights:
    """A store, and a place of each kind to publish to."""
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        return Nights(store, server.url)
    return Nights(store, f"{request.param}:{tmp_path / 'cache'}")


def test_what_a_night_publishes(nights: Nights) -> None:
    nights.rank({"What causes  TIDES?": ["d7", "d2", "d9"], "猫": ["d1"]})
    text = nights.published()
    assert text.startswith("generation 1 is current: 2 entries, 2 from this run, 0 carried over")
    found = nights.values()
    assert found.keys() == {key("what causes tides?"), key("猫")}
    value = found[key("what causes tides?")]
    assert list(value) == ["docids", "scores", "model", "template", "created", "job"]
    assert (value["docids"], value["scores"]) == (["d7", "d2", "d9"], [3, 2, 1])
    assert (value["model"], value["template"]) == ("judge", "direct-en@1")
    assert value["job"] == b"job".ljust(20).hex()
    assert value["created"].endswith("Z")


def test_the_same_run_again_writes_nothing(nights: Nights) -> None:
    nights.rank({"a": ["d1", "d2"]})
    nights.published()
    nights.rank({"a": ["d2", "d1"]})
    nights.published()
    assert "generation 2 is current already" in nights.published()
    assert nights.roll_back().code == 0
    assert nights.docids() == {key("a"): ["d1", "d2"]}


def test_what_was_not_ranked_tonight_is_carried_over(nights: Nights) -> None:
    nights.rank({"a": ["d1", "d2"], "b": ["d3"]})
    nights.published()
    nights.rank({"a": ["d2", "d1"], "c": ["d4"]})
    assert "3 entries, 2 from this run, 1 carried over" in nights.published()
    assert nights.docids() == {
        key("a"): ["d2", "d1"],
        key("b"): ["d3"],
        key("c"): ["d4"],
    }


def told(nights: Nights) -> str:
    """What `status` says of the latest run."""
    return batchrank("status", "--store", nights.store).out.decode()


def test_replace_drops_it_and_coverage_refuses(nights: Nights) -> None:
    nights.rank({"a": ["d1"], "b": ["d3"]})
    nights.published()
    nights.rank({"a": ["d2"]})
    before = nights.docids()
    refused = nights.publish("--replace")
    assert refused.code == 3
    assert "published by hand: " in told(nights)
    assert ": failed: 1 of 2 keys" in told(nights)
    assert "1 of 2 keys that are current (50.0%) would stay" in refused.err
    assert nights.docids() == before
    nights.published("--replace", "--min-coverage", "0.5")
    ended = told(nights)
    assert "is current: 1 entry, 1 from this run" in ended
    assert "failed" not in ended
    nights.publish("--dry-run")
    assert told(nights) == ended
    assert nights.docids() == {key("a"): ["d2"]}


def test_rollback_goes_back_as_far_as_generations_are_kept(nights: Nights) -> None:
    for docid in ("d1", "d2", "d3", "d4"):
        nights.rank({"a": [docid]})
        nights.published("--keep", "3")
    for docid in ("d3", "d2"):
        assert nights.roll_back().code == 0
        assert nights.docids() == {key("a"): [docid]}
    refused = nights.roll_back()
    assert refused.code == 2
    assert "keeps no generation before the current one" in refused.err


def test_a_dry_rollback_says_what_would_become_current_and_changes_nothing(nights: Nights) -> None:
    for docid in ("d1", "d2"):
        nights.rank({"a": [docid]})
        nights.published()
    for _ in range(2):
        told = nights.roll_back("--dry-run")
        assert told.code == 0, told.err
        assert b"generation 1 would be current again (run 1 of " in told.out
        assert nights.docids() == {key("a"): ["d2"]}
    assert b"generation 1 is current again" in nights.roll_back().out
    assert nights.roll_back("--dry-run").code == 2
    assert nights.docids() == {key("a"): ["d1"]}


def test_a_generation_that_was_rolled_back_from_does_not_come_back(nights: Nights) -> None:
    for docid in ("d1", "d2"):
        nights.rank({"a": [docid]})
        nights.published()
    nights.roll_back()
    nights.rank({"a": ["d3"]})
    nights.published()
    nights.roll_back()
    assert nights.docids() == {key("a"): ["d1"]}


def test_nothing_to_roll_back_to(nights: Nights) -> None:
    assert nights.roll_back().code == 2
    nights.rank({"a": ["d1"]})
    nights.published("--keep", "1")
    assert nights.roll_back().code == 2
    assert nights.docids() == {key("a"): ["d1"]}


def test_statuses_are_chosen(nights: Nights) -> None:
    statuses = {"b": "repaired", "c": "degraded", "d": "unranked", "e": "failed"}
    nights.rank({query: ["d1"] for query in "abcde"}, statuses=statuses)
    nights.published()
    assert nights.docids().keys() == {key("a"), key("b")}
    nights.published("--status", "ok,degraded", "--replace", "--min-coverage", "0")
    assert nights.docids().keys() == {key("a"), key("c")}


def test_lines_with_one_key_are_counted_and_the_first_stays(nights: Nights) -> None:
    nights.rank({"Tides": ["d1"], "tides ": ["d2"], "x": ["d3"]})
    text = nights.published()
    assert "2 entries, 2 from this run" in text
    assert "1 line with the key of an earlier line" in text
    assert nights.docids()[key("tides")] == ["d1"]


def test_keys_made_another_way_are_not_mixed(nights: Nights) -> None:
    nights.rank({"Tides": ["d1"]})
    nights.published()
    refused = nights.publish("--normalise", "none")
    assert refused.code == 2
    assert "nfkc,casefold,spaces, now none" in refused.err
    nights.published("--normalise", "none", "--replace", "--min-coverage", "0")
    assert len(nights.docids()) == 1
    assert key("tides") not in nights.docids()


def test_a_dry_run_writes_nothing(nights: Nights, tmp_path: Path) -> None:
    nights.rank({"a": ["d1"], "b": ["d2"]})
    before = sorted(tmp_path.iterdir())
    text = nights.published("--dry-run")
    assert "would write at most 2 entries" in text
    assert "nothing is published there yet" in text
    assert [path for path in tmp_path.iterdir() if path.name.startswith("cache")] == []
    assert len(before) <= len(list(tmp_path.iterdir()))
    nights.published()
    assert "is current already" in nights.published("--dry-run")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"exit_code": 3}, "run 1 was rejected by a gate"),
        ({"exit_code": None}, "run 1 did not end"),
        ({"exit_code": 75}, "run 1 ended early (exit 75)"),
        ({"exit_code": 75, "summary": {"publishable": False}}, "run 1 ended early (exit 75)"),
        ({"exit_code": 1}, "run 1 ended early (exit 1)"),
    ],
)
def test_runs_that_no_gate_passed_are_refused(
    store: Path, tmp_path: Path, how: dict[str, object], said: str
) -> None:
    nights = Nights(store, f"jsonl:{tmp_path / 'cache'}")
    nights.rank({"a": ["d1"]}, **how)
    refused = nights.publish()
    assert refused.code == 3
    assert said in refused.err
    assert not (tmp_path / "cache").exists()
    nights.published("--ungated")


def test_a_short_night_publishes_what_is_done(nights: Nights) -> None:
    nights.rank({"a": ["d1"], "b": ["d2"]})
    nights.published()
    nights.rank({"a": ["d9"]}, exit_code=75, summary={"publishable": True})
    nights.published()
    assert nights.docids() == {key("a"): ["d9"], key("b"): ["d2"]}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--status", "fine"), "--status"),
        (("--status", "failed"), "--status failed: use some of"),
        (("--normalise", "lower"), "--normalise"),
        (("--ttl", "soon"), "is no duration"),
        (("--jitter", "1"), "--jitter"),
        (("--min-coverage", "90"), "--min-coverage"),
        (("--keep", "0"), "--keep"),
        (("--max-ops", "0"), "--max-ops"),
        (("--namespace", "a b"), "--namespace"),
        (("--password-env", "NOT_THERE"), "NOT_THERE"),
        (("--ttl", "0s"), "--ttl 0s: must be more than nothing"),
    ],
)
def test_flags_that_cannot_be_meant(
    store: Path, tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    nights = Nights(store, f"jsonl:{tmp_path / 'cache'}")
    nights.rank({"a": ["d1"]})
    refused = nights.publish(*flags)
    assert refused.code == 2
    assert said in refused.err


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: f"csv:{path}", "is no target"),
        (lambda path: "jsonl:", "is no target"),
        (lambda path: f"jsonl:{path.parent}", "is a folder"),
        (lambda path: f"sqlite:{path}/x/y", "create its folder"),
        (lambda path: f"sqlite:{path.parent / 'store.sqlite'}", "is the store"),
    ],
)
def test_targets_that_cannot_be_meant(
    store: Path, tmp_path: Path, make: Callable[[Path], str], said: str
) -> None:
    nights = Nights(store, make(tmp_path / "cache"))
    nights.rank({"a": ["d1"]})
    refused = nights.publish()
    assert refused.code == 2
    assert said in refused.err


@pytest.mark.parametrize("content", [b"", b'{"query":"x"}\n', b"SQLite format 3\0" + b"x" * 100])
def test_a_file_of_something_else_is_not_touched(files: Nights, content: bytes) -> None:
    path = Path(files.target.partition(":")[2])
    path.write_bytes(content)
    files.rank({"a": ["d1"]})
    ended = files.publish()
    if files.target.startswith("sqlite") and not content:
        assert ended.code == 0  # SQLite takes an empty file for an empty database
        return
    assert ended.code == 2
    assert path.read_bytes() == content


def torn(data: bytes) -> bytes:
    return data[: len(data) // 2]


def without_its_last_line_end(data: bytes) -> bytes:
    return data[:-1]


def with_other_bytes_inside(data: bytes) -> bytes:
    at = len(data) // 3
    return data[:at] + b"\xff" * 100 + data[at + 100 :]


def header_with(**fields: object) -> Callable[[bytes], bytes]:
    def damage(data: bytes) -> bytes:
        first, rest = data.split(b"\n", 1)
        header = {**json.loads(first), **fields}
        kept = {name: value for name, value in header.items() if value is not None}
        return json.dumps(kept).encode() + b"\n" + rest

    return damage


def last_line(line: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data + line + b"\n"


IN_ITS_LINES = (
    *(torn, without_its_last_line_end, with_other_bytes_inside),
    *(header_with(scheme=5), header_with(scheme="new"), header_with(generation=None)),
    *(header_with(generation="x"), header_with(identity=[]), header_with(source={})),
    *map(last_line, (b"[]", b"5", b"{}", b"{", b"\xff", b"null")),
    last_line(b'{"key":5,"expires":null,"value":{}}'),
    last_line(b'{"key":"xyz","expires":null,"value":{}}'),
    last_line(b'{"key":"00","expires":"soon","value":{}}'),
    last_line(b'{"key":"00","expires":true,"value":{}}'),
    last_line(b'{"key":"00","expires":null,"value":[]}'),
    last_line(b'{"key":"00","expires":null}'),
)


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        *(("jsonl:cache.jsonl", damage) for damage in IN_ITS_LINES),
        *(
            (f"{kind}:cache{ending}", damage)
            for kind, ending in (("jsonl", ".gz"), ("jsonl", ".zst"), ("parquet", ""))
            for damage in (torn, with_other_bytes_inside)
        ),
        ("sqlite:cache", torn),
    ],
)
def test_a_target_that_was_damaged_is_told_and_left(
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    damage: Callable[[bytes], bytes],
) -> None:
    monkeypatch.chdir(tmp_path)
    nights = Nights(store, kind)
    nights.rank({f"{n}": [f"d{n}"] for n in range(300)})
    nights.published()
    path = tmp_path / kind.partition(":")[2]
    path.write_bytes(damaged := damage(path.read_bytes()))
    nights.rank({"new": ["d2"]})
    refused = nights.publish()
    assert refused.code == (1 if kind.startswith("sqlite") else 2), refused.err
    assert refused.err.count("\n") == 1
    assert path.name in refused.err
    assert path.read_bytes() == damaged
    assert [file.name for file in tmp_path.iterdir() if "partial" in file.name] == []


@pytest.mark.parametrize("scheme", ["", "new", "nfkc+docs"])
def test_a_table_with_another_way_of_making_keys_is_told(
    store: Path, tmp_path: Path, scheme: str
) -> None:
    nights = Nights(store, f"sqlite:{tmp_path / 'cache'}")
    nights.rank({"a": ["d1"]})
    nights.published()
    with closing(sqlite3.connect(tmp_path / "cache")) as db, db:
        db.execute("UPDATE generations SET scheme = ?", (scheme,))
    refused = nights.publish()
    assert refused.code == 2
    assert f"is not known here ({scheme!r})" in refused.err


def test_a_rollback_leaves_a_damaged_file_behind(store: Path, tmp_path: Path) -> None:
    nights = Nights(store, f"jsonl:{tmp_path / 'cache'}")
    for docid in ("d1", "d2"):
        nights.rank({"a": [docid]})
        nights.published()
    (tmp_path / "cache").write_bytes(b'{"torn')
    assert nights.publish().code == 2
    assert nights.roll_back().code == 0
    nights.published()
    assert nights.docids() == {key("a"): ["d2"]}


def test_json_lines_are_packed_by_name_and_carried_from_there(store: Path, tmp_path: Path) -> None:
    nights = Nights(store, f"jsonl:{tmp_path / 'cache.jsonl.gz'}")
    nights.rank({"a": ["d1"]})
    nights.published()
    assert (tmp_path / "cache.jsonl.gz").read_bytes()[:2] == b"\x1f\x8b"
    nights.rank({"b": ["d1"]})
    assert "1 carried over" in nights.published()


def test_a_full_disk_leaves_the_old_file(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights = Nights(store, f"jsonl:{tmp_path / 'cache'}")
    nights.rank({"a": ["d1"]})
    nights.published()
    before = (tmp_path / "cache").read_bytes()
    nights.rank({"a": ["d2"]})
    real = AtomicFile.write

    def full(self: AtomicFile, data: bytes) -> None:
        if b'"value"' in data:
            raise OSError(28, "No space left on device")
        real(self, data)

    with monkeypatch.context() as patch:
        patch.setattr(AtomicFile, "write", full)
        assert nights.publish().code == 1
    assert (tmp_path / "cache").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_json_tells_what_became_of_it(nights: Nights) -> None:
    nights.rank({"a": ["d1"], "A": ["d1"]})
    told = json.loads(nights.published("--json"))
    assert (told["generation"], told["entries"], told["shared"]) == (1, 1, 1)
    told = json.loads(nights.published("--json", "--dry-run"))
    assert (told["is_current"], told["current"]) == (True, 1)
    nights.rank({"a": ["d2"]})
    nights.published()
    for flags, is_current in ((["--dry-run"], False), ([], True)):
        told = nights.roll_back("--json", *flags).json
        assert (told["generation"], told["is_current"]) == (1, is_current)
        assert told["source"].startswith("run 1 of ")


@pytest.mark.parametrize("target", ["redis://127.0.0.1:1/0", "unix:///x", "jsonl:cache.jsonl"])
def test_the_store_comes_first(store: Path, target: str) -> None:
    refused = batchrank("publish", target, store)
    assert refused.code == 2
    assert "the store comes first: batchrank publish STORE TARGET" in refused.err


def test_a_store_and_a_target_are_needed(store: Path) -> None:
    assert batchrank("publish", store).code == 2
    assert batchrank("publish", store, "jsonl:x").code == 2
