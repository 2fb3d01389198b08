"""Tables become a line a query, whatever their separator, and say the row where they can't."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import orjson
import pandas as pd
import pytest

from batchrank.errors import LineError, UsageError
from batchrank.formats.requests import parse_request
from batchrank.formats.sources.source import Source, check_readable, is_plain
from batchrank.values import Document, InputFormat
from tests.conftest import ROOT
from tests.formats.sources.reading import lines_of, values_of

HEADER = "qid,query,docid,score,title,text,metadata,year"
ROWS = '''
q1,"what, and
why",d1,2.5,,"first ""one""","{""lang"": ""de""}",2024
q1,"what, and
why",d2,,A title,,,
q2,who,7,1e3,,x,,
'''


def table(folder: Path, text: str, name: str = "in.csv") -> Source:
    path = folder / name
    path.write_bytes(text.encode())
    return Source(str(path))


def test_a_csv_gives_a_line_a_query(tmp_path: Path) -> None:
    first, second = lines_of(table(tmp_path, f"\ufeff{HEADER}\r\n{ROWS}"))
    assert (first.number, second.number) == (3, 7)
    request = parse_request(first.data).request
    assert request.query.text == "what, and\nwhy"
    assert request.candidates == (
        Document("d1", 'first "one"', None, 2.5, {"lang": "de", "year": "2024"}),
        Document("d2", "A title"),
    )
    assert parse_request(second.data).request.candidates == (Document("7", "x", score=1000.0),)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_told_from_the_header(tmp_path: Path, separator: str) -> None:
    text = "query_id,query,doc_id,segment\n1,a,b,c\n".replace(",", separator)
    (value,) = values_of(table(tmp_path, text))
    assert value["query"] == {"qid": "1", "text": "a"}
    assert value["candidates"][0]["doc"] == {"text": "c"}


def test_what_is_wrong_with_a_query_is_a_failed_line(tmp_path: Path) -> None:
    rows = "q1,a,d1,high,x\nq2,a,d1,1,x\nq2,b,d2,1,x\n,a,d,1,x\nq4,a,,1,x\nq5,a,d,NaN,x\n"
    got = lines_of(table(tmp_path, f"qid,query,docid,score,text\n{rows}"))
    kinds = []
    for line in got[:4]:
        with pytest.raises(LineError) as raised:
            parse_request(line.data)
        kinds.append((line.number, raised.value.kind))
    assert kinds == [(2, "score"), (3, "query"), (5, "qid"), (6, "docid")]
    assert len(parse_request(got[4].data).warnings) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("qid,query,docid,text\n1,a,b\n", "in.csv', line 2: 3 columns, the header has 4"),
        (
            'qid,query,docid,text\n1,a,b,"c\n2,b,c,d\n',
            "in.csv', line 2: .*quote that is not closed",
        ),
        ('qid,query,docid,text\n1,a,b,"c"d\n', "in.csv', line 2: "),
        ("qid,query,docid,qid,text\n", "has a column twice: 'qid'$"),
        ("qid,docid,text\n", r"has no column query \(query or query_text\)"),
        ("qid,query,docid,text\n", "is empty: expected a header and a row a candidate below it"),
    ],
)
def test_a_table_that_can_t_be_used_is_refused(tmp_path: Path, text: str, said: str) -> None:
    source = table(tmp_path, text)
    with pytest.raises(UsageError, match=said):
        lines_of(Source(source.path, "csv"))
    with pytest.raises(UsageError, match=said):
        lines_of(source)


def test_bytes_that_are_no_utf_8_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "in.tsv"
    path.write_bytes(b"qid\tquery\tdocid\ttext\n1\ta\tb\tc\n1\ta\td\tcaf\xe9\n")
    with pytest.raises(UsageError, match=r"line 3: byte 10 \(0xe9\) is not UTF-8"):
        lines_of(Source(str(path)))


def frame() -> pd.DataFrame:
    rows = [
        ("q1", "a", 1, 2.5, "x", 2024),
        ("q1", "a", 2, None, "", None),
        ("q2", "é", 1, 1, "y", 1),
    ]
    return pd.DataFrame(rows, columns=["qid", "query", "docid", "score", "text", "year"])


def test_a_frame_of_pandas_is_read(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    frame().set_index("qid", append=True).reset_index("qid").to_parquet(path)
    first, second = lines_of(Source(str(path)))
    assert (first.number, second.number) == (1, 3)
    parsed = parse_request(first.data)
    assert parsed.request.candidates == (
        Document("1", "x", None, 2.5, {"year": 2024.0}),
        Document("2", ""),
    )
    assert parse_request(second.data).request.query.text == "é"


@pytest.mark.parametrize("form", [None, "parquet"])
def test_parquet_may_be_packed(tmp_path: Path, form: InputFormat | None) -> None:
    plain, packed = tmp_path / "in.parquet", tmp_path / "in.parquet.gz"
    frame().to_parquet(plain)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert values_of(Source(str(packed), form)) == values_of(Source(str(plain), form))


def test_parquet_may_hold_candidates_in_a_column(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    candidates = [{"docid": "d1", "score": 2.0, "text": "x"}, {"docid": "d2", "title": "T"}]
    query = {"qid": "q1", "text": "a"}
    pd.DataFrame(
        [{"query": query, "candidates": candidates}, {"query": query, "candidates": []}]
    ).to_parquet(path)
    first, second = lines_of(Source(str(path)))
    assert parse_request(first.data).request.candidates == (
        Document("d1", "x", score=2.0),
        Document("d2", "T"),
    )
    assert (second.number, parse_request(second.data).request.candidates) == (2, ())


def test_parquet_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    frame().to_parquet(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UsageError, match=r"in\.parquet' is no Parquet file"):
        check_readable(Source(str(path)))


def test_rankgpt_hits_are_read_from_lines_and_arrays(tmp_path: Path) -> None:
    hits = [{"content": "x", "qid": 3, "docid": "d1", "rank": 1, "score": 2.5}]
    record = orjson.dumps({"query": "a", "hits": hits})
    mixed = orjson.dumps({"query": "a", "hits": [*hits, {**hits[0], "qid": 4}]})
    nobody = orjson.dumps({"query": "a", "hits": []})
    path = tmp_path / "hits"
    for data in (b"\n".join([record, mixed, nobody]), b"[%b,%b,%b]" % (record, mixed, nobody)):
        path.write_bytes(data)
        good, *bad = lines_of(Source(str(path)))
        request = parse_request(good.data).request
        assert request.query.qid == "3"
        assert request.candidates == (Document("d1", "x", score=2.5),)
        for line in bad:
            with pytest.raises(LineError) as raised:
                parse_request(line.data)
            assert raised.value.kind == "qid"


def test_only_plain_json_tells_by_its_size_how_far_it_is(tmp_path: Path) -> None:
    assert is_plain(table(tmp_path, '{"query": "a"}\n', "in.jsonl"))
    assert is_plain(table(tmp_path, '[{"query": "a"}]', "in.json"))
    assert not is_plain(table(tmp_path, f"{HEADER}\n"))
    assert not is_plain(Source("-"))


def test_the_example_in_the_docs_is_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "input.md").read_text()
    (example,) = re.findall(r"```csv\n(.*?)```", text, re.DOTALL)
    (line,) = lines_of(table(tmp_path, example))
    first, second = parse_request(line.data).request.candidates
    assert first == Document("d7", "The pull of the moon, mostly.", "Tide", 12.3, {"year": "2024"})
    assert (second.docid, second.title) == ("d2", None)
