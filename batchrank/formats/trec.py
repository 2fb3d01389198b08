"""Reads TREC qrels and the lines of TREC runs, with errors that name the line."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import zstandard

from batchrank.errors import UsageError
from batchrank.formats.compression import decompressed
from batchrank.formats.lines import split_lines
from batchrank.formats.sniff import no_text
from batchrank.formats.wording import quoted, shown
from batchrank.metrics.evaluation import Qrels

_CHUNK = 256 * 1024
_HIGHEST_GRADE = 1_000_000
"""trec_eval's code takes memory for every grade up to the highest."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank; `where` names its file and number."""

    path: Path
    number: int
    text: str

    @property
    def where(self) -> str:
        """The file and the line, to begin a message with."""
        return f"{quoted(self.path)}, line {self.number}"


def numbered_lines(path: Path) -> Iterator[Line]:
    """The lines of a UTF-8 file, plain, .gz or .zst, that are not blank.

    Raises UsageError where it can't be opened, unpacked or decoded.
    """
    try:
        with path.open("rb") as file:
            chunks = decompressed(iter(partial(file.read, _CHUNK), b""))
            head = next(chunks, b"")
            if (reason := no_text(head)) is not None:
                told = reason.partition(":")[0]
                raise UsageError(f"{quoted(path)} {told}: expected lines of text")
            for number, line in enumerate(split_lines(chain((head,), chunks)), 1):
                if text := _decoded(path, number, line):
                    yield Line(path, number, text)
    except OSError as error:
        raise UsageError(f"{quoted(path)} can't be read: {error.strerror}") from error
    except (EOFError, zlib.error, zstandard.ZstdError) as error:
        raise UsageError(f"{quoted(path)} is damaged or cut off: copy or pack it again") from error


def read_qrels(path: Path) -> Qrels:
    """Read TREC qrels, `qid iteration docid grade` with whole numbers as grades.

    Raises UsageError for a bad line, two different grades of one document, or an empty file.
    """
    qrels: Qrels = {}
    for line in numbered_lines(path):
        fields = line.text.split()
        if len(fields) != 4:
            raise UsageError(
                f"{line.where}: expected the 4 columns of TREC qrels, `qid 0 docid grade`, "
                f"found {len(fields)}{_guess(fields)}"
            )
        qid, _, docid, grade = fields
        try:
            value = int(grade)
        except ValueError:
            raise UsageError(f"{line.where}: the grade {shown(grade)} is no whole number") from None
        if abs(value) > _HIGHEST_GRADE:
            raise UsageError(f"{line.where}: grade {value} is out of range: at most 1,000,000")
        if qrels.setdefault(qid, {}).setdefault(docid, value) != value:
            raise UsageError(
                f"{line.where}: document {shown(docid)} of query {shown(qid)} has grade {value}, "
                f"and {qrels[qid][docid]} on an earlier line"
            )
    if not qrels:
        raise UsageError(f"{quoted(path)} is empty: expected qrels, `qid 0 docid grade`")
    return qrels


def read_trec_line(line: Line) -> tuple[str, str, float]:
    """The qid, docid and score of a line of a TREC run; the rank is not read, as in trec_eval.

    The score may be NaN or infinite. Raises UsageError where it is no number at all, and where the
    line is none of a run.
    """
    fields = line.text.split()
    if len(fields) != 6:
        raise UsageError(
            f"{line.where}: expected the 6 columns of a TREC run, `qid Q0 docid rank score tag`, "
            f"found {len(fields)}{_guess(fields)}"
        )
    qid, _, docid, _, score, _ = fields
    try:
        value = float(score)
    except ValueError:
        raise UsageError(f"{line.where}: the score {shown(score)} is no number") from None
    return qid, docid, value


def _guess(fields: list[str]) -> str:
    if fields[0].startswith("{"):
        return ": this looks like JSON"
    if len(fields) == 6 and fields[1].upper() == "Q0":
        return ": this looks like a run"
    if len(fields) == 4:
        return ": this looks like qrels"
    return ""


def _decoded(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise UsageError(f"{quoted(path)}, line {number}: not UTF-8: {error.reason}") from None
