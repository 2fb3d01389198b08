"""Joins a TREC run with its corpus and topics, in files of their own or in a BEIR folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

from batchrank.errors import LineError, UsageError
from batchrank.formats.lines import RawLine
from batchrank.formats.querywarnings import named_queries
from batchrank.formats.sources.corpus import Texts, TextStore, text_store
from batchrank.formats.sources.tables import encoded, unusable
from batchrank.formats.trec import numbered_lines, read_trec_line
from batchrank.formats.wording import counted, quoted, shown

_PACKINGS = ("", ".gz", ".zst")
_RUNS = ("*.trec", "*.run", "run.*")
_Query = tuple[int, str, list[tuple[str, float]]]
"""The line that a query begins in, its qid, and its docids with their scores in file order."""


def trec(run: str, corpus: Path | None, topics: Path | None) -> Texts:
    """A run with its texts; UsageError where one of them is not named."""
    if corpus is None or topics is None:
        lacking = "--corpus" if corpus is None else "--topics"
        raise UsageError(f"a TREC run holds no texts: name their files, {lacking} is missing")
    if run == "-" or Path(run).is_fifo():
        raise UsageError("a TREC run is read twice: give a file, not a pipe")
    return Texts(Path(run), corpus, topics)


def beir(folder: Path, run: Path | None, corpus: Path | None, topics: Path | None) -> Texts:
    """A BEIR folder and a run, which may lie in it; UsageError where a file is missing."""
    if not folder.is_dir():
        raise UsageError(f"{quoted(folder)} is no folder: a BEIR folder has a corpus.jsonl")
    return Texts(
        run or _only_run(folder),
        corpus or _inside(folder, "corpus.jsonl"),
        topics or _inside(folder, "queries.jsonl"),
    )


def _inside(folder: Path, name: str) -> Path:
    for packing in _PACKINGS:
        if (path := folder / f"{name}{packing}").is_file():
            return path
    raise UsageError(f"{quoted(folder)} is a folder without {name}: give a file, or a BEIR folder")


def _only_run(folder: Path) -> Path:
    _inside(folder, "corpus.jsonl")
    found = sorted({path for pattern in _RUNS for path in folder.glob(pattern)})
    if len(found) != 1:
        raise UsageError(
            f"{quoted(folder)} has {counted(len(found), 'run')} ({', '.join(_RUNS)}): "
            "name the first stage's with --run-file"
        )
    return found[0]


def check(texts: Texts) -> None:
    """See that the three files begin as they should; UsageError."""
    if next(_queries(texts.run), None) is None:
        raise UsageError(f"{quoted(texts.run)} is empty: expected a TREC run")
    with text_store() as store:
        store.read_first(texts)


def joined_lines(
    texts: Texts, limit: int | None, note: Callable[[str], None] | None
) -> Iterator[RawLine]:
    """The queries of a run, numbered by the line each begins in; candidates as the run has them.

    The lines of a query stand together. Where the run is read to its end, `note` is told of topics
    that it lacks. Raises UsageError where a file can't be used.
    """
    with text_store() as store:
        needed = (docs for _, _, docs in islice(_queries(texts.run), limit))
        store.want(docid for docid, _ in chain.from_iterable(needed))
        store.read_corpus(texts.corpus)
        store.read_topics(texts.topics)
        for query in islice(_queries(texts.run), limit):
            yield RawLine(query[0], _line(query, texts, store))
        if limit is None and note is not None:
            count, first = store.unasked()
            if count:
                note(
                    f"{named_queries(count, first)} of the topics {quoted(texts.topics)}: the run "
                    f"{quoted(texts.run)} has no candidates for them"
                )


def _line(query: _Query, texts: Texts, store: TextStore) -> bytes:
    _, qid, docs = query
    found = store.documents(docid for docid, _ in docs)
    text = store.query(qid)
    candidates: list[dict[str, Any]] = [
        {"docid": docid, "score": score, "doc": found.get(docid, "")} for docid, score in docs
    ]
    line = {"query": {"qid": qid, "text": text}, "candidates": candidates}
    lacking = [docid for docid, _ in docs if docid not in found]
    if text is None:
        error = LineError("topics", f"The topics {quoted(texts.topics)} have no qid {shown(qid)}.")
    elif lacking:
        more = f" and {len(lacking) - 1} more" if lacking[1:] else ""
        error = LineError(
            "corpus", f"The corpus {quoted(texts.corpus)} has no {shown(lacking[0])}{more}."
        )
    else:
        return encoded(line)
    return unusable(qid, error, line)


def _queries(run: Path) -> Iterator[_Query]:
    lines = ((line.number, *read_trec_line(line)) for line in numbered_lines(run))
    for qid, stretch in groupby(lines, key=lambda line: line[1]):
        rows = list(stretch)
        yield rows[0][0], qid, [(docid, score) for _, _, docid, score in rows]
