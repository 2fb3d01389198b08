"""Turns an input of one format into a file of another, without ranking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from batchrank.errors import LineError, UsageError
from batchrank.formats.atomic import AtomicFile
from batchrank.formats.encoders.base import Encoder, Record
from batchrank.formats.encoders.formats import make_encoder
from batchrank.formats.lines import RawLine
from batchrank.formats.qids import Qids
from batchrank.formats.querywarnings import QueryWarnings
from batchrank.formats.records import Entry, read_record
from batchrank.formats.sources.source import Source, read_queries
from batchrank.values import OutputFormat

_NAMED = 20


@dataclass(slots=True)
class Converted:
    """Queries that were written, and what was not: of lines left out the first few are named.

    `query_warnings` are about queries that were written, `notes` about the input as a whole.
    """

    queries: int = 0
    left_out: int = 0
    reasons: list[str] = field(default_factory=list)
    query_warnings: QueryWarnings = field(default_factory=QueryWarnings)
    notes: list[str] = field(default_factory=list)


def convert(source: Source, output: str, form: OutputFormat, limit: int | None) -> Converted:
    """Write the queries of a source to `output` (`-` for stdout), whole or not at all.

    The source may be batchrank's own output. Lines that can't be used, that have the qid of an
    earlier one and say something else, or that the format can't hold, are left out. Raises
    UsageError as `read_queries`, where a package is missing, and where no line is left to write:
    the old file stays. DiskError.
    """
    found = Converted()
    encoder = make_encoder(form, "batchrank")
    with AtomicFile(output) as file:
        blocks = read_queries(replace(source, results=True), limit, found.notes.append)
        for data in _encoded(blocks, encoder, found):
            file.write(data)
        if not found.queries:
            more = f" ({found.left_out - 1:,} more)" if found.left_out > 1 else ""
            raise UsageError(
                f"no query of the input can be written as {form}, so nothing is: "
                f"{found.reasons[0]}{more}"
            )
        file.write(encoder.end())
    return found


def _encoded(
    blocks: Iterator[list[RawLine]], encoder: Encoder, found: Converted
) -> Iterator[bytes]:
    qids = Qids()
    kind: type[Record] | None = None
    for line in (line for block in blocks for line in block):
        try:
            record, warnings = read_record(line.data, line.number)
            kind = kind or type(record)
            if not isinstance(record, kind):
                raise LineError("shape", "A file holds requests or results, not both.")
            qid = record.request.query.qid if isinstance(record, Entry) else record.qid
            # A result that failed may be one that had the qid of another.
            if qid is not None and (isinstance(record, Entry) or record.error is None):
                qids.take(qid, line)
            yield encoder.add(record)
        except LineError as error:
            found.left_out += 1
            if found.left_out <= _NAMED:
                found.reasons.append(f"line {line.number}: {error}")
            continue
        found.queries += 1
        found.query_warnings.add(warnings, qid or "")
