"""A TREC run finds its texts, in their own files or in a BEIR folder, or says what is missing."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.errors import LineError, UsageError
from batchrank.formats.requests import SCORES_MISSING, parse_request, salvage
from batchrank.formats.sources.corpus import text_store
from batchrank.formats.sources.source import Source, check_readable, read_queries
from batchrank.values import Document
from tests.formats.sources.reading import lines_of

RUN = "q1 Q0 d2 1 9.5 bm25\nq1\tQ0\td1\t2\t8\tbm25\n\nq2 Q0 d1 1 3 bm25\n"
CORPUS: list[dict[str, object]] = [
    {"_id": "d1", "title": "", "text": "one", "metadata": {"year": 2024}},
    {"_id": "d3", "title": "", "text": "nobody asks for it"},
    {"_id": "d2", "title": "Two", "text": "two"},
    {"_id": "d2", "title": "Two", "text": "a second time"},
]
TOPICS = [{"_id": "q1", "text": "what is one"}, {"_id": "q2", "text": "what is two"}]
WANTED = (
    Document("d2", "two", "Two", 9.5),
    Document("d1", "one", None, 8.0, {"year": 2024}),
)


def jsonl(rows: Sequence[Mapping[str, object]]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A BEIR folder with a run."""
    (tmp_path / "bm25.trec").write_text(RUN)
    (tmp_path / "corpus.jsonl").write_bytes(jsonl(CORPUS))
    (tmp_path / "queries.jsonl").write_bytes(jsonl(TOPICS))
    return tmp_path


def test_a_beir_folder_is_read(folder: Path) -> None:
    first, second = lines_of(Source(str(folder)))
    assert (first.number, second.number) == (1, 4)
    request = parse_request(first.data).request
    assert (request.query.qid, request.query.text) == ("q1", "what is one")
    assert request.candidates == WANTED
    assert len(lines_of(Source(str(folder)), limit=1)) == 1


@pytest.mark.parametrize("score", ["NaN", "nan", "inf", "-Infinity", "1e999"])
def test_a_score_that_is_no_number_is_null_and_told(folder: Path, score: str) -> None:
    (folder / "bm25.trec").write_text(f"q1 Q0 d2 1 {score} t\nq1 Q0 d1 2 8 t\n")
    (line,) = lines_of(Source(str(folder)))
    parsed = parse_request(line.data)
    assert [document.score for document in parsed.request.candidates] == [None, 8.0]
    assert parsed.warnings == (SCORES_MISSING,)


@pytest.mark.parametrize("kind", ["jsonl", "tsv", "gz"])
def test_a_run_is_read_with_its_corpus_and_topics(folder: Path, kind: str) -> None:
    corpus, topics = folder / f"corpus.{kind}", folder / f"topics.{kind}"
    if kind == "tsv":
        corpus.write_text("d1\tone\nd2\tTwo\ttwo\nd4\t\n")
        topics.write_text("q1\twhat is one\nq2\twhat is two\n")
    else:
        data = jsonl(CORPUS), jsonl(TOPICS)
        packed = [gzip.compress(part) if kind == "gz" else part for part in data]
        corpus.write_bytes(packed[0])
        topics.write_bytes(packed[1])
    source = Source(str(folder / "bm25.trec"), corpus=corpus, topics=topics)
    assert replace(source, form="trec") != source
    for one in (source, replace(source, form="trec")):
        request = parse_request(lines_of(one)[0].data).request
        assert [(doc.docid, doc.text, doc.title or "") for doc in request.candidates] == [
            (doc.docid, doc.text, doc.title or "") for doc in WANTED
        ]


def test_what_the_texts_lack_is_a_failed_query(folder: Path) -> None:
    (folder / "queries.jsonl").write_bytes(jsonl(TOPICS[1:]))
    (folder / "bm25.trec").write_text(f"{RUN}q2 Q0 d8 2 2 t\nq2 Q0 d9 2 2 t\n")
    kinds = []
    for line in lines_of(Source(str(folder))):
        with pytest.raises(LineError) as raised:
            parse_request(line.data)
        assert raised.value.qid == salvage(line.data).query.qid
        kinds.append((raised.value.kind, str(raised.value), len(salvage(line.data).candidates)))
    topics, corpus = kinds
    assert (topics[0], topics[2]) == ("topics", 2)
    assert "queries.jsonl' have no qid 'q1'" in topics[1]
    assert (corpus[0], corpus[2]) == ("corpus", 3)
    assert "corpus.jsonl' has no 'd8' and 1 more" in corpus[1]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("corpus.jsonl", b'{"_id": "d1"\n', r"corpus.jsonl', line 1: not JSON"),
        ("corpus.jsonl", b'\n{"title": "x"}\n', r"corpus.jsonl', line 2: no identifier"),
        ("corpus.jsonl", b"d1\ta\tb\tc\td\n", r"corpus.jsonl', line 1: 5 columns"),
        ("corpus.jsonl", b"d1\tcaf\xe9\n", r"corpus.jsonl', line 1: not UTF-8"),
        ("corpus.jsonl", b"", "is empty: expected the corpus"),
        ("queries.jsonl", b"q1 what\n", r"queries.jsonl', line 1: expected JSON, or qid TAB text"),
        ("queries.jsonl", b'{"_id": "q1"}\n', r"queries.jsonl', line 1: no text of a query"),
        ("bm25.trec", b"q1 Q0 d1 1 x t\n", r"bm25.trec', line 1: the score 'x' is no number"),
        ("bm25.trec", b"q1 Q0 d1\n", r"bm25.trec', line 1: expected the 6 columns"),
        ("bm25.trec", b"\n", "is empty: expected a TREC run"),
    ],
)
def test_a_file_that_can_t_be_used_names_its_line(
    folder: Path, name: str, data: bytes, said: str
) -> None:
    (folder / name).write_bytes(data)
    with pytest.raises(UsageError, match=said):
        check_readable(Source(str(folder)))


def test_what_is_missing_is_said(folder: Path) -> None:
    run = str(folder / "bm25.trec")
    said = {
        Source(run): "looks like a TREC run: .* --corpus and --topics",
        Source(run, "trec"): "--corpus is missing",
        Source(run, corpus=folder / "corpus.jsonl"): "--topics is missing",
        Source("-", "trec", folder / "corpus.jsonl", folder / "queries.jsonl"): "read twice",
        Source(run, run_file=Path(run)): "--run-file goes with a BEIR folder",
        Source(run, "jsonl", folder / "corpus.jsonl"): "--corpus and --topics go with",
        Source(run, "beir"): "is no folder",
    }
    for source, expected in said.items():
        with pytest.raises(UsageError, match=expected):
            check_readable(source)


def test_a_beir_folder_needs_one_run(folder: Path) -> None:
    (folder / "other.run").write_text(RUN)
    with pytest.raises(UsageError, match=r"has 2 runs .* --run-file"):
        lines_of(Source(str(folder)))
    assert len(lines_of(Source(str(folder), run_file=folder / "other.run"))) == 2
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(UsageError, match=r"is a folder without corpus.jsonl"):
        lines_of(Source(str(folder)))


@given(st.lists(st.text("ab12é", min_size=1, max_size=3), unique=True, max_size=40))
def test_every_document_that_was_named_is_found(
    tmp_path_factory: pytest.TempPathFactory, docids: list[str]
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    rows: list[dict[str, object]] = [{"docid": docid, "text": f"of {docid}"} for docid in docids]
    path.write_bytes(jsonl([*rows, {"docid": "last", "text": "z"}]))
    wanted = docids[::2]
    with text_store() as store:
        store.want([*wanted, "absent"])
        store.read_corpus(path)
        found = store.documents([*docids, "absent"])
    assert found == {docid: {"text": f"of {docid}"} for docid in wanted}


@pytest.mark.parametrize("head", ["qid\tquery", "query_id\ttext", "ID\tText"])
def test_names_of_columns_are_no_topic(folder: Path, head: str) -> None:
    topics = folder / "topics.tsv"
    topics.write_text(f"{head}\nq1\twhat is one\nq2\twhat is two\nq3\twhat is three\n")
    source = Source(str(folder / "bm25.trec"), corpus=folder / "corpus.jsonl", topics=topics)
    said: list[str] = []
    blocks = list(read_queries(source, None, said.append))
    assert sum(map(len, blocks)) == 2
    (one,) = said
    assert one.startswith("1 query ('q3') of the topics")


@pytest.mark.parametrize("part", ["bm25.trec", "corpus.jsonl", "queries.jsonl"])
def test_a_part_that_is_no_text_is_named(folder: Path, part: str) -> None:
    (folder / part).write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(UsageError, match=f"{part}' looks like an image: expected lines of text"):
        lines_of(Source(str(folder)))
