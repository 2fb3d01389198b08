"""An array gives the lines of its elements, however it is laid out and wherever it is cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.errors import LineError, UsageError
from batchrank.formats import lines
from batchrank.formats.lines import RawLine
from batchrank.formats.opening import Opened
from batchrank.formats.requests import parse_request
from batchrank.formats.sources import arrays
from batchrank.formats.sources.arrays import json_array_lines
from batchrank.formats.sources.source import Source
from tests.formats.sources.reading import lines_of

REQUEST = {"query": {"qid": "1", "text": "a"}, "candidates": [{"docid": "d", "text": "t"}]}

TEXTS = st.text(st.sampled_from('ab"\\[]{},\n\u2028é '), max_size=8)
OBJECTS = st.dictionaries(
    TEXTS, st.recursive(TEXTS | st.integers() | st.none(), st.lists, max_leaves=5), max_size=3
)


def cut(data: bytes, size: int) -> list[RawLine]:
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    return list(json_array_lines(Opened("it", data, iter(chunks))))


@given(st.lists(OBJECTS, max_size=4), st.integers(1, 9), st.sampled_from([None, 1]), st.booleans())
def test_elements_come_out_as_they_went_in(
    values: list[object], size: int, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only)
    got = cut(f"\n {text}\r\n".encode(), size)
    assert [line.number for line in got] == list(range(1, len(values) + 1))
    assert [json.loads(line.data) for line in got] == values
    assert not any(b"\n" in line.data for line in got)


def test_one_bad_element_is_one_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    good = json.dumps(REQUEST)
    odd = ['{"query": 1 2}', good.replace('"t"', '"\\ud800"'), good.replace('"d"', "NaN"), "7"]
    path.write_text(f"[{good}, {', '.join(odd)},\n{good}]")
    first, *wrong, last = lines_of(Source(str(path)))
    assert parse_request(first.data) == parse_request(last.data)
    assert last.number == 6
    for line, kind in zip(wrong, ("json", "encoding", "docid", "shape"), strict=True):
        with pytest.raises(LineError) as raised:
            parse_request(line.data)
        assert raised.value.kind == kind


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{}, {}", "ends in element 2"),
        ('[{"a": "]', "ends in element 1"),
        ("[{}, {}] {}", "no JSON array behind element 2"),
        ("[{}] []", "no JSON array behind element 1"),
        ("[{},]", "no JSON array behind element 1"),
        ("[,{}]", "is no JSON array:"),
        ('{"a": 1}', "is no JSON array:"),
        ("a [1]", "is no JSON array:"),
    ],
)
def test_what_is_no_whole_array_is_refused(text: str, said: str, size: int) -> None:
    with pytest.raises(UsageError, match=said):
        cut(text.encode(), size)


def test_an_element_that_is_too_long_is_a_failed_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_LINE", 20)
    (long, short) = cut(b'[{"query": "' + b"x" * 99 + b'"}, {}]', 10)
    assert (len(long.data), short.data) == (21, b"{}")
    assert lines.MAX_LINE > 20
