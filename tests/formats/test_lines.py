"""Lines come out numbered and whole, from any packing, and damage is never a silent end."""

from __future__ import annotations

import gzip
import os
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from batchrank.errors import LineError, UsageError
from batchrank.formats import lines
from batchrank.formats.lines import RawLine, read_lines
from batchrank.formats.requests import parse_request

GOOD = b'{"query":{"qid":"1","text":"a"},"candidates":[]}'

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def read(path: Path | str, limit: int | None = None) -> list[RawLine]:
    return [line for block in read_lines(str(path), limit) for line in block]


def read_bytes(folder: Path, data: bytes, limit: int | None = None) -> list[RawLine]:
    path = folder / "queries.jsonl"
    path.write_bytes(data)
    return read(path, limit)


@contextmanager
def piped(data: bytes) -> Iterator[TextIO]:
    """Open a pipe to read from that another thread fills with `data`."""
    reader, writer = os.pipe()
    thread = threading.Thread(target=_fill, args=(writer, data))
    thread.start()
    with os.fdopen(reader) as file:
        yield file
    thread.join()


def _fill(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def test_numbers_count_blank_lines_and_line_ends_are_dropped(tmp_path: Path) -> None:
    data = b"\n" + GOOD + b"\r\n  \t\r\n" + GOOD + b"\n\n" + GOOD
    assert read_bytes(tmp_path, data) == [RawLine(2, GOOD), RawLine(4, GOOD), RawLine(6, GOOD)]


def test_a_byte_order_mark_is_dropped_from_the_first_line_only(tmp_path: Path) -> None:
    bom = b"\xef\xbb\xbf"
    got = read_bytes(tmp_path, bom + GOOD + b"\n" + bom + GOOD)
    assert got == [RawLine(1, GOOD), RawLine(2, bom + GOOD)]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\r"])
def test_only_a_newline_ends_a_line(tmp_path: Path, separator: str) -> None:
    data = f'{{"query": "a{separator}b"}}'.encode()
    assert read_bytes(tmp_path, data + b"\n") == [RawLine(1, data)]


@pytest.mark.parametrize("name", ["queries.jsonl", "queries.jsonl.gz", "queries.zst", "odd.name"])
@pytest.mark.parametrize("packing", PACKERS)
def test_packing_is_told_by_content_not_by_name(tmp_path: Path, name: str, packing: str) -> None:
    path = tmp_path / name
    path.write_bytes(PACKERS[packing](GOOD + b"\n" + GOOD))
    assert read(path) == [RawLine(1, GOOD), RawLine(2, GOOD)]


@pytest.mark.parametrize("packing", PACKERS)
def test_standard_input_needs_no_seek(monkeypatch: pytest.MonkeyPatch, packing: str) -> None:
    data = (GOOD + b"\n") * 5000
    with piped(PACKERS[packing](data)) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert read("-") == [RawLine(number, GOOD) for number in range(1, 5001)]


def test_a_closed_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="Standard input is closed"):
        read("-")


def test_a_named_pipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(GOOD + b"\n" + GOOD,))
    writer.start()
    got = read(path)
    writer.join()
    assert [line.number for line in got] == [1, 2]


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_members_and_frames_are_read_to_the_last(tmp_path: Path, packing: str) -> None:
    pack = PACKERS[packing]
    data = pack(GOOD[:20]) + pack(b"") + pack(GOOD[20:] + b"\n") + pack(GOOD)
    assert read_bytes(tmp_path, data) == [RawLine(1, GOOD), RawLine(2, GOOD)]


def test_padding_after_a_gzip_member_is_skipped(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, gzip.compress(GOOD) + b"\0" * 5000) == [RawLine(1, GOOD)]


def test_skippable_zstd_frames_are_skipped(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    data = skippable + PACKERS["zstd"](GOOD) + skippable
    assert read_bytes(tmp_path, data) == [RawLine(1, GOOD)]


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_packed_data_torn_at_any_byte_is_refused(tmp_path: Path, packing: str) -> None:
    packed = PACKERS[packing](b"".join(b'{"query":%d}\n' % number for number in range(20)))
    for cut in range(4, len(packed)):
        with pytest.raises(UsageError, match=r"queries\.jsonl' ends in .* in line \d+: it was cut"):
            read_bytes(tmp_path, packed[:cut])


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_lines_before_damage_come_out_and_the_message_says_where_it_is(
    tmp_path: Path, packing: str
) -> None:
    rows = [b'{"query":"%s"}' % os.urandom(200).hex().encode() for _ in range(5000)]
    packed = PACKERS[packing](b"\n".join(rows))
    path = tmp_path / "queries.jsonl"
    path.write_bytes(packed[: len(packed) // 2])
    got: list[bytes] = []
    with pytest.raises(UsageError, match=r"in line (\d+)") as raised:
        got.extend(line.data for block in read_lines(str(path)) for line in block)
    reached = int(str(raised.value).split("in line ")[1].split(":")[0])
    assert 1000 < len(got) <= reached < 5000
    assert got == rows[: len(got)]


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_garbage_after_packed_data_is_damage(tmp_path: Path, packing: str) -> None:
    with pytest.raises(UsageError, match="is damaged in line 2"):
        read_bytes(tmp_path, PACKERS[packing](GOOD + b"\n") + b"garbage!")


def test_a_limit_stops_before_damage(tmp_path: Path) -> None:
    data = b"\n" + (GOOD + b"\n\n") * 10
    assert [line.number for line in read_bytes(tmp_path, data, limit=3)] == [2, 4, 6]
    assert len(read_bytes(tmp_path, data, limit=100)) == 10


def test_blocks_are_bounded_in_lines_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_bytes((GOOD + b"\n") * 1000)
    assert [len(block) for block in read_lines(str(path))] == [256, 256, 256, 232]
    long = b'{"query":"' + b"x" * 400_000 + b'"}\n'
    path.write_bytes(long * 7)
    assert [len(block) for block in read_lines(str(path))] == [3, 3, 1]


def test_a_line_beyond_the_bound_is_cut_then_refused_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1000)
    monkeypatch.setattr("batchrank.formats.jsonline.MAX_LINE", 1000)
    long = b'{"query":{"qid":"long","text":"' + b"x" * 500_000 + b'"}}'
    got = read_bytes(tmp_path, GOOD + b"\n" + long + b"\n" + GOOD)
    assert [(line.number, len(line.data)) for line in got] == [(1, 48), (2, 1001), (3, 48)]
    with pytest.raises(LineError, match="longer than") as raised:
        parse_request(got[1].data)
    assert (raised.value.kind, raised.value.qid) == ("size", "long")


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_bomb_is_read_in_flat_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: str
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1_000_000)
    path = tmp_path / "queries.jsonl"
    path.write_bytes(PACKERS[packing](GOOD + b"\n" + b" " * 100_000_000 + b"\n" + GOOD))
    tracemalloc.start()
    got = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert got == [RawLine(1, GOOD), RawLine(3, GOOD)]
    assert peak < 60_000_000


@given(data=st.binary(max_size=3000))
def test_random_bytes_give_lines_or_a_usage_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    message, got = "", []
    try:
        got = read_bytes(tmp_path_factory.getbasetemp(), data)
    except UsageError as error:
        message = str(error)
    assert bool(got) != bool(message)
    assert message.isprintable()
    assert all(line.data.strip() and b"\n" not in line.data for line in got)


@given(
    bodies=st.lists(st.binary(max_size=60).filter(lambda body: b"\n" not in body), max_size=30),
    packing=st.sampled_from(sorted(PACKERS)),
)
def test_every_line_that_is_not_blank_comes_out_once(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[bytes], packing: str
) -> None:
    bodies = [GOOD, *bodies]
    got = read_bytes(tmp_path_factory.getbasetemp(), PACKERS[packing](b"\n".join(bodies)))
    assert got == [
        RawLine(number, body.removesuffix(b"\r"))
        for number, body in enumerate(bodies, 1)
        if body.strip()
    ]
