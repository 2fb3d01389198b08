"""Tells from its first bytes what a file is when it is no input, or no JSONL."""

from __future__ import annotations

import codecs
import re
from typing import Any

import orjson

from batchrank.formats.wording import shown

_TEXTLESS = "batchrank needs the texts too"
_AS_JSONL = "give JSONL, one object a line with a query and its candidates' texts (docs/input.md)"
_UNPACK = "unpack it first"

_MAGIC: tuple[tuple[re.Pattern[bytes], str, str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), what, remedy)
    for pattern, what, remedy in (
        (
            rb"\xff\xfe\0\0|\0\0\xfe\xff|[{\[]\0\0\0|\0\0\0[{\[]",
            "UTF-32 text",
            "convert it with `iconv -f UTF-32 -t UTF-8 FILE > queries.jsonl`",
        ),
        (
            rb"\xff\xfe|\xfe\xff|[{\[]\0|\0[{\[]",
            "UTF-16 text",
            "convert it with `iconv -f UTF-16 -t UTF-8 FILE > queries.jsonl`",
        ),
        (rb"PAR1", "a Parquet file", "its format is parquet"),
        (rb"ARROW1|\xff{4}.{4}\x10\0", "an Arrow file", "write it as JSONL, one object a query"),
        (rb"%PDF-", "a PDF document", _AS_JSONL),
        (rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF.{4}WEBP|BM.{4}\0{4}", "an image", _AS_JSONL),
        (rb"\x7fELF|MZ[^\n]{0,20}\0|\xcf\xfa\xed\xfe", "a program", _AS_JSONL),
        (rb"\x80[\x02-\x05]", "a Python pickle", _AS_JSONL),
        (rb"\x93NUMPY|\x89HDF", "an array of numbers", _AS_JSONL),
        (rb"GGUF", "a model", "give the queries, not the model"),
        (rb"PK[\x03\x05]", "a zip archive", _UNPACK),
        (rb".{257}ustar", "a tar archive", _UNPACK),
        (rb"7z\xbc\xaf|Rar!", "an archive", _UNPACK),
        (rb"BZh", "bzip2 data", f"{_UNPACK}, or pack it as .gz or .zst"),
        (rb"\xfd7zXZ\0", "xz data", f"{_UNPACK}, or pack it as .gz or .zst"),
        (rb"\x1f\x8b|\x28\xb5\x2f\xfd", "data that was packed twice", _UNPACK),
        (
            rb"SQLite format 3\0",
            "an SQLite database",
            "give the JSONL of queries, not a store",
        ),
    )
)

_RUN_LINE = re.compile(rb"\S+\s+\S+\s+\S+\s+\d+\s+[-+.\deE]+\s+\S+")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MOSTLY_TEXT = 0.03
"""The share of control characters that a text may have; packed data has one in ten."""


OWN_OUTPUT = "looks like batchrank's own output: give the file that it was made from"


def no_text(head: bytes) -> str | None:
    """Say what a file looks like that holds no text, and what to do; None where it may hold some.

    `head` is the first tens of KB, unpacked, without a byte order mark.
    """
    for pattern, what, remedy in _MAGIC:
        if pattern.match(head):
            return f"looks like {what}: {remedy}"
    # One line that holds an object makes it a log of queries that something has damaged.
    is_noise = len(_CONTROLS.findall(head)) > len(head) * _MOSTLY_TEXT and not _is_utf8(head)
    if is_noise and not any(map(json_object, head.split(b"\n"))):
        return f"looks like binary data: {_AS_JSONL}"
    return None


def _is_utf8(head: bytes) -> bool:
    """Whether it is UTF-8; it may end within a character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def refusal(head: bytes) -> str | None:
    """Say what a file looks like that begins with `head` and what to do; None if it may be JSONL.

    Files that hold no text are told by `no_text`. Lines that are merely broken are no reason to
    refuse: they become failed queries.
    """
    lines = [line for line in map(bytes.strip, head.split(b"\n")) if line]
    return _refused_lines(lines) if lines else None


def _refused_lines(lines: list[bytes]) -> str | None:
    first = lines[0]
    request = next((value for value in map(json_object, lines) if "query" in value), None)
    # The last element of an array may stand alone in its line and read like a request.
    if first == b"[" or (first.startswith(b"[") and request is None):
        return "looks like one JSON array, not a JSON object a line: its format is json"
    if request is not None:
        if "ranking" not in request or "candidates" in request:
            return None
        return OWN_OUTPUT
    if first.startswith(b"{") and not json_object(first) and lines[1:2] and lines[1][:1] == b'"':
        return (
            "looks like JSON spread over several lines, not a JSON object a line: "
            "turn it into lines with `jq -c . FILE > queries.jsonl`"
        )
    if any(line.startswith(b"{") for line in lines):
        return None
    return _refused_text(lines)


def _refused_text(lines: list[bytes]) -> str:
    """Name a file of which no line begins like a JSON object."""
    first = lines[0]
    if _RUN_LINE.fullmatch(first):
        return f"looks like a TREC run: {_TEXTLESS}; name them with --corpus and --topics"
    if _CONTROLS.search(first):
        return f"looks like binary data: {_AS_JSONL}"
    for separator, what in ((b"\t", "tab-separated values"), (b",", "CSV"), (b";", "CSV")):
        columns = first.count(separator)
        if columns and all(line.count(separator) == columns for line in lines[1:2]):
            return (
                f"looks like {what}: the first line has to name the columns, "
                "qid, query, docid and text"
            )
    found = shown(first.decode(errors="replace"))
    return f"holds no JSON object, its first line is {found}: {_AS_JSONL}"


def json_object(line: bytes) -> dict[str, Any]:
    """Read a line as a JSON object; empty if it is none."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
