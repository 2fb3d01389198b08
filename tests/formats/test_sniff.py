"""What is no JSONL is refused at once, by name, with a remedy; what is merely broken is not."""

from __future__ import annotations

import gzip
import io
import json
import re
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import pytest

from batchrank.errors import UsageError
from batchrank.formats.lines import read_lines
from batchrank.formats.rows import Row, encode_jsonl

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
    "array in a line": (json.dumps([REQUEST] * 900).encode(), "JSON array.*--format json"),
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
    "binary": (b"\x80\x04\x95\x07\0\0\0\0\0\0\0", "binary"),
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
