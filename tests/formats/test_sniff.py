"""What is no JSONL is refused at once, by name, with a remedy; what is merely broken is not."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.errors import UsageError
from batchrank.formats.lines import read_lines
from batchrank.formats.rows import Row, encode_jsonl
from batchrank.formats.sniff import no_text
from batchrank.formats.sources.source import Source, check_readable, read_queries
from batchrank.values import InputFormat

REQUEST = {"query": {"qid": "1", "text": "a"}, "candidates": [{"docid": "d", "doc": {"text": "t"}}]}
LINE = json.dumps(REQUEST)


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as raised:
        next(read_lines(str(path)))
    message = str(raised.value)
    assert raised.value.exit_code == 2
    assert "\n" not in message
    assert path.name in message
    return message


def archive(kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w") as packed:
            packed.writestr("queries.jsonl", LINE)
    else:
        with tarfile.open(fileobj=file, mode="w") as packed_tar:
            packed_tar.addfile(tarfile.TarInfo("queries.jsonl"))
    return file.getvalue()


OWN_ROW = encode_jsonl(Row("1", "a", "ok", (), {}, 0, 0, 0, "m", "t", None, 1))

REFUSED: dict[str, tuple[bytes, str]] = {
    "utf-16": (LINE.encode("utf-16"), "UTF-16.*iconv"),
    "utf-32": (LINE.encode("utf-32"), "UTF-32.*iconv -f UTF-32"),
    "utf-32 without mark": (LINE.encode("utf-32-le"), "UTF-32"),
    "utf-32 big end first": (LINE.encode("utf-32-be"), "UTF-32"),
    "utf-16 without mark": (LINE.encode("utf-16-le"), "UTF-16"),
    "utf-16 big end first": (LINE.encode("utf-16-be"), "UTF-16"),
    "array in a line": (json.dumps([REQUEST] * 900).encode(), "JSON array.*its format is json"),
    "array over lines": (json.dumps([REQUEST] * 9, indent=1).encode(), "JSON array"),
    "array of one line each": (f"[\n{LINE},\n{LINE}\n]\n".encode(), "JSON array"),
    "array that opens in a line": (f"[{LINE},\n{LINE}]\n".encode(), "JSON array"),
    "pretty object": (json.dumps(REQUEST, indent=2).encode(), "several lines.*jq -c"),
    "pretty objects": (
        "\n".join(json.dumps(REQUEST, indent=2) for _ in range(3)).encode(),
        "several lines",
    ),
    "csv": (b'qid,query,docid,text\r\n1,"flea, life",d1,x\r\n', "first line is|CSV"),
    "csv by semicolon": (b"qid;docid;text\n1;d1;x\n", "CSV"),
    "csv in latin-1": (b"qid,text\n1,caf\xe9\n", "CSV"),
    "tsv": (b"1\twhat is a flea\n2\thow far does it jump\n", "tab-separated"),
    "trec run": (b"264014 Q0 5611210 1 15.780400 Anserini\n" * 20, "TREC run"),
    "trec run with tabs": (b"1\tQ0\td1\t1\t-1.5e-3\tbm25\n", "TREC run"),
    "parquet": (b"PAR1\x15\x04\x15\x10", "Parquet"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "PDF"),
    "zip": (archive("zip"), "zip archive"),
    "tar": (archive("tar"), "tar archive"),
    "packed tar": (gzip.compress(archive("tar")), "tar archive"),
    "packed twice": (gzip.compress(gzip.compress(LINE.encode())), "packed twice"),
    "bzip2": (b"BZh91AY&SY", "bzip2"),
    "own output": (OWN_ROW * 3, "own output"),
    "pickle": (b"\x80\x04\x95\x07\0\0\0\0\0\0\0", "Python pickle"),
    "prose": (b"Ein Satz ohne Zeichen\nund noch einer\n", "first line is 'Ein Satz"),
    "escape codes": (b"\x1b[31mred\n", r"'\\x1b\[31mred'"),
    "empty": (b"", "is empty"),
    "blank": (b"\n  \n\r\n", "is empty"),
    "only a mark": (b"\xef\xbb\xbf", "is empty"),
    "packed nothing": (gzip.compress(b""), "is empty"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_is_no_jsonl_is_refused_by_name(tmp_path: Path, case: str) -> None:
    data, expected = REFUSED[case]
    path = tmp_path / "input.any"
    path.write_bytes(data)
    assert re.search(expected, refusal(path))


def test_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "batchrank.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    assert "SQLite database" in refusal(path)


def test_a_missing_file_suggests_a_near_name(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text(LINE)
    assert "did you mean" in refusal(tmp_path / "querys.jsonl")
    assert refusal(tmp_path / "zzz.tsv").endswith("does not exist.")
    for result in ("ranked-2026-11-30.jsonl", "ranked-2026-11-30.jsonl.summary.json"):
        (tmp_path / result).write_bytes(b"{}")
    assert "did you mean" not in refusal(tmp_path / "ranked-2026-11-29.jsonl")
    assert "nor does its folder" in refusal(tmp_path / "nowhere" / "queries.jsonl")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in refusal(tmp_path)


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(LINE)
    assert "can't be opened: Not a directory" in refusal(tmp_path / "file" / "queries.jsonl")


def test_a_name_with_control_characters_is_made_visible() -> None:
    with pytest.raises(UsageError, match=r"\\x00.*can't be opened"):
        next(read_lines("a\0b"))
    with pytest.raises(UsageError, match=r"\\x1b\[2J' does not exist"):
        next(read_lines("no\x1b[2J"))


ACCEPTED: dict[str, list[bytes]] = {
    "a broken first line": [b'{"query": {"qid": "1"', LINE.encode()],
    "a comment first": [b"# made by export", LINE.encode()],
    "an array among objects": [b"[1, 2]", LINE.encode()],
    "NaN in every line": [b'{"query":{"qid":"1"},"score":NaN}'] * 3,
    "invalid bytes in every line": [b'{"query":"\xff"}'] * 3,
    "lines without a query": [b'{"_id": "1", "text": "a"}'] * 2,
    "one line cut off": [b'{"query": {"qid": "1", "te'],
    "NUL bytes in the second line": [LINE.encode(), b"\0\0\0"],
    "a first line longer than what is looked at": [
        b'{"query":"' + b"x" * 200_000 + b'"}',
        LINE.encode(),
    ],
    "text that mentions a run": [b'{"query": "1 Q0 d 1 2.0 tag"}'],
    "a request that holds a ranking": [b'{"query":"a","qid":"1","ranking":[],"candidates":[]}'],
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_broken_lines_are_no_reason_to_refuse_the_file(tmp_path: Path, case: str) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_bytes(b"\n".join(ACCEPTED[case]))
    (block,) = read_lines(str(path))
    assert [line.data for line in block] == ACCEPTED[case]


def packed_like(seed: int) -> bytes:
    """Bytes without any pattern, as compressed data are, with lines that begin like JSON."""
    noise = random.Random(seed).randbytes(70_000)
    return noise[:100] + b"\n{" + noise[100:] + b'\n"a'


BINARY: dict[str, tuple[bytes, str]] = {
    "png": (b"\x89PNG\r\n\x1a\n" + packed_like(1), "an image"),
    "jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF\0" + packed_like(2), "an image"),
    "gif": (b"GIF89a" + packed_like(3), "an image"),
    "webp": (b"RIFF\1\2\3\4WEBP" + packed_like(4), "an image"),
    "pdf": (b"%PDF-1.7\n{\n" + packed_like(5), "a PDF document"),
    "zip": (b"PK\x03\x04" + packed_like(6), "a zip archive"),
    "7z": (b"7z\xbc\xaf\x27\x1c" + packed_like(7), "an archive"),
    "elf": (b"\x7fELF\2\1\1\0" + packed_like(8), "a program"),
    "pickle": (b"\x80\x04\x95" + packed_like(9), "a Python pickle"),
    "numpy": (b"\x93NUMPY\1\0v\0{'descr': '<f4'}\n" + packed_like(10), "an array of numbers"),
    "gguf": (b"GGUF\3\0\0\0" + packed_like(11), "a model"),
    "sqlite": (b"SQLite format 3\0" + packed_like(12), "an SQLite database"),
    "unknown": (packed_like(13), "binary data"),
    "unknown, like JSON": (b'{"a": 1, ' + packed_like(14), "binary data"),
    "unknown, like an array": (b"[{" + packed_like(15), "binary data"),
    "unknown, like a table": (b"qid,query,docid,text\n" + packed_like(16), "binary data"),
}


@pytest.mark.parametrize("form", [None, *sorted(set(get_args(InputFormat)) - {"trec", "beir"})])
@pytest.mark.parametrize("kind", BINARY)
def test_what_is_no_text_is_refused_by_its_first_bytes(
    tmp_path: Path, kind: str, form: InputFormat | None
) -> None:
    data, expected = BINARY[kind]
    path = tmp_path / "input.any"
    path.write_bytes(data)
    for read in (check_readable, lambda source: next(read_queries(source))):
        with pytest.raises(UsageError, match=f"looks like {expected}: [^\n]*$"):
            read(Source(str(path), form))


@given(st.text(st.characters(codec="utf-8")), st.integers(0, 3))
def test_no_text_is_taken_for_binary_data(text: str, cut: int) -> None:
    data = f"qid {text}".encode()
    assert no_text(data[: len(data) - cut]) is None
