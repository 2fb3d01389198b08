"""Turns an input of one format into a file of another, without ranking."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from batchrank.errors import LineError
from batchrank.formats.atomic import AtomicFile
from batchrank.formats.encoders.base import Record
from batchrank.formats.encoders.formats import make_encoder
from batchrank.formats.entries import read_record
from batchrank.formats.sources.source import Source, read_queries
from batchrank.values import OutputFormat

_NAMED = 20


@dataclass(slots=True)
class Converted:
    """Queries that were written, and what was not: of lines left out the first few are named.

    `warnings` counts what is odd about lines by its sentence.
    """

    queries: int = 0
    left_out: int = 0
    reasons: list[str] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)


def convert(source: Source, output: str, form: OutputFormat, limit: int | None) -> Converted:
    """Write the queries of a source to `output` (`-` for stdout), whole or not at all.

    The source may be batchrank's own output. Lines that can't be used, or that the format can't
    hold, are left out. Raises UsageError as `read_queries` and where a package is missing;
    DiskError.
    """
    found = Converted()
    encoder = make_encoder(form, "batchrank")
    kind: type[Record] | None = None
    with AtomicFile(output) as file:
        for block in read_queries(replace(source, results=True), limit):
            for line in block:
                try:
                    record, warnings = read_record(line.data, line.number)
                    kind = kind or type(record)
                    if not isinstance(record, kind):
                        raise LineError("shape", "A file holds requests or results, not both.")
                    file.write(encoder.add(record))
                except LineError as error:
                    found.left_out += 1
                    if found.left_out <= _NAMED:
                        found.reasons.append(f"line {line.number}: {error}")
                    continue
                found.queries += 1
                found.warnings.update(warnings)
        file.write(encoder.end())
    return found
