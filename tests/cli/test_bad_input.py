"""Every odd input through the command line: a ranking, a failed row, or one line that says why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from scripts.judge import JudgeConfig, JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, docids, rows_of, serving, windows, written
from tests.formats.test_input_cases import OUTCOMES


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    """A judge that goes by the words of query and document."""
    with serving(JudgeServer(JudgeConfig(kind="vllm"), None)) as running:
        yield running


def cases(folder: Path) -> dict[str, Any]:
    text = (folder / "cases.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.split("\n") if line]
    return {row["id"]: row["payload"] for row in rows if row["kind"] == "input"}


def test_every_shared_case_ends_as_it_should(shared_data: Path, shell: Shell) -> None:
    for name, payload in cases(shared_data).items():
        if name not in OUTCOMES:
            continue
        source = shell.folder / f"{name}.jsonl"
        raw = isinstance(payload, dict)
        source.write_bytes(bytes.fromhex(payload["bytes_hex"]) if raw else payload.encode())
        ended = shell.run(source, "--max-failed", "1", "--json")
        assert ended.code == 0, (name, ended.err)
        assert "Traceback" not in ended.err
        rows = rows_of(shell.folder / f"{name}.ranked.jsonl")
        expected = list(OUTCOMES[name].values())
        if name == "input-007":
            expected[1] = "duplicate"
        found = [row["error"]["kind"] if "error" in row else "ok" for row in rows]
        assert found == expected, name
        for row in rows:
            assert len(set(docids(row))) == len(docids(row))


def row(qid: str, *texts: str, query: str = "tea") -> Row:
    return {"qid": qid, "query": query, "documents": list(texts)}


def test_large_documents_and_long_lists_are_ranked(shell: Shell, server: JudgeServer) -> None:
    rows = [
        row("long", "tea " * 250_000, "A" * 1_000_000, "\u8336" * 350_000, "tea"),
        row("many", *(f"cup {n} of tea" for n in range(10_000))),
    ]
    source = written(shell.folder / "in.jsonl", rows)
    ended = shell.run(source)
    assert ended.code == 0, ended.err
    long, many = rows_of(shell.folder / "in.ranked.jsonl")
    assert long["status"] == many["status"] == "ok"
    assert sorted(docids(long)) == ["1", "2", "3", "4"]
    assert sorted(docids(many), key=int) == [str(n) for n in range(1, 10_001)]
    assert docids(many)[100:] == [str(n) for n in range(101, 10_001)]
    assert len(windows(server)) < 60


ODD: dict[bytes, str | None] = {
    b'{"qid": "a", "query": "x", "documents": ["NUL \\u0000 here", "b"]}': None,
    b'\xef\xbb\xbf{"qid": "a", "query": "x", "documents": ["bom", "b"]}': None,
    '{"qid": "a", "query": "line\u2028end", "documents": ["x\u2029y", "b"]}'.encode(): None,
    b'{"qid": "a", "query": "x", "documents": ["a", "b"], "weight": 3}': None,
    b'{"query": {"qid": "a", "text": "x", "weight": 0.5}, "documents": ["a", "b"]}': None,
    b'{"qid": "a", "query": "x", "documents": ["a", "b"], "weight": -1}': "weight",
    b'{"qid": "a", "query": "x", "documents": ["a", "b"], "weight": "much"}': "weight",
    b'{"qid": "a", "query": "x", "documents": ["a", "b"], "weight": true}': "weight",
    b'{"qid": "a", "query": "x", "candidates": ["b", {"docid": 9, "doc": "", "score": NaN}]}': None,
    b'{"qid": "a", "query": "x", "candidates": [{"docid": "d", "score": NaN}]}': "text",
    b'{"qid": "a", "query": "x", "candidates": [{"docid": "d", "score": -Infinity}]}': "text",
    b'{"qid": "a", "query": "\\ud800", "documents": ["a", "b"]}': "encoding",
    b'{"qid": "a", "query": "x", "documents": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}": "json",
    b'{"qid": "a", "query": "x", "documents": ["torn': "json",
    b'{"qid": 1.0, "query": "x", "documents": ["a", "b"]}': "qid",
    b'{"qid": "a", "query": "", "documents": ["a", "b"]}': "query",
    b'{"qid": "a", "query": "x", "candidates": 7}': "shape",
}


def test_odd_lines_fail_alone_and_say_why(shell: Shell) -> None:
    good = {"qid": "good", "query": "tea", "documents": ["tea", "coffee"]}
    for number, (line, kind) in enumerate(ODD.items()):
        source = shell.folder / f"{number}.jsonl"
        source.write_bytes(line + b"\n\n" + orjson.dumps(good))
        ended = shell.run(source, "--max-failed", "1")
        assert ended.code == 0, (line[:80], ended.err)
        assert "Traceback" not in ended.err
        odd, fine = rows_of(shell.folder / f"{number}.ranked.jsonl")
        assert fine["status"] == "ok"
        if kind is None:
            assert odd["status"] == "ok"
        else:
            assert (odd["status"], odd["error"]["kind"]) == ("failed", kind), line[:80]
            assert odd["error"]["line"] == 1
            assert "\x00" not in odd["error"]["message"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b'["qid", "a"]', "array"),
        ('{"qid": "a"}\n'.encode("utf-16"), "UTF-16"),
        (b"qid,query\n1,tea\n", "queries.jsonl"),
        (None, "is a folder"),
    ],
)
def test_what_is_no_jsonl_is_one_line_and_exit_2(
    shell: Shell, server: JudgeServer, content: bytes | None, said: str
) -> None:
    source = shell.folder / "queries.jsonl"
    if content is None:
        source.mkdir()
    else:
        source.write_bytes(content)
    ended = shell.run(source)
    assert ended.code == 2, ended.err
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert server.calls == []
