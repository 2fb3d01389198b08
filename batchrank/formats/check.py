"""Says of a whole input, without a model, what is in it and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from batchrank.errors import LineError
from batchrank.formats.lines import RawLine
from batchrank.formats.qids import Qids
from batchrank.formats.requests import parse_request
from batchrank.formats.wording import counted, shown
from batchrank.values import Request

_EXAMPLES = 3


@dataclass(slots=True)
class Finding:
    """How often one thing was found, and the first lines: (line number, reason)."""

    count: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)

    def add(self, number: int, reason: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append((number, reason))


@dataclass(slots=True)
class CheckReport:
    """What an input holds. Counts are of lines unless said otherwise."""

    read: int = 0
    """Lines that are not blank."""
    queries: int = 0
    """Lines that can be ranked, repeats not counted."""
    repeats: int = 0
    """Lines that repeat an earlier one word for word: written again at no cost."""
    failed: dict[str, Finding] = field(default_factory=dict)
    """By kind of error."""
    warnings: dict[str, Finding] = field(default_factory=dict)
    """By sentence."""
    candidates: Counter[int] = field(default_factory=Counter)
    """Number of queries by their number of candidates."""
    empty_texts: int = 0
    """Documents without text."""
    nothing_to_rank: int = 0
    """Queries that need no model: less than two candidates, or only empty texts."""
    longest: int = 0
    """Characters of the longest document."""
    longest_where: tuple[int, str] | None = None
    """Its line number and docid."""

    @property
    def failures(self) -> int:
        """Lines that become failed queries."""
        return sum(finding.count for finding in self.failed.values())

    def candidates_at(self, share: float) -> int:
        """Return how many candidates the query at `share` (0 fewest, 1 most) of all has."""
        rank = share * (self.queries - 1)
        for number in sorted(self.candidates):
            rank -= self.candidates[number]
            if rank < 0:
                return number
        return 0

    def lines(self) -> list[str]:
        """Return the report as sentences for a person."""
        said = [
            f"{counted(self.queries, 'query', 'queries')} in {counted(self.read, 'line')}, "
            f"{self.repeats:,} repeated word for word, {self.failures:,} failed"
        ]
        if self.queries:
            fewest, middle, most = (self.candidates_at(share) for share in (0, 0.5, 1))
            said.append(
                f"candidates a query: {fewest:,} at least, {middle:,} in the middle, "
                f"{most:,} at most"
            )
        if self.longest_where:
            number, docid = self.longest_where
            said.append(
                f"longest document: {counted(self.longest, 'character')} "
                f"({shown(docid)} in line {number:,})"
            )
        if self.empty_texts:
            said.append(f"{counted(self.empty_texts, 'document')} without text")
        if self.nothing_to_rank:
            said.append(
                f"{counted(self.nothing_to_rank, 'query', 'queries')} with nothing to rank "
                "(fewer than two candidates, or only empty texts)"
            )
        for sentence, finding in self.warnings.items():
            said.append(
                f"warning, {counted(finding.count, 'line')} (first line "
                f"{finding.examples[0][0]:,}): {sentence}"
            )
        for kind, finding in self.failed.items():
            said.append(f"failed, {kind}: {counted(finding.count, 'line')}")
            said.extend(f"  line {number:,}: {reason}" for number, reason in finding.examples)
            if finding.count > len(finding.examples):
                said.append(f"  and {finding.count - len(finding.examples):,} more")
        return said

    def as_dict(self) -> dict[str, object]:
        """Return the report as plain values for JSON."""
        return {
            "lines": self.read,
            "queries": self.queries,
            "repeats": self.repeats,
            "failed": _plain(self.failed),
            "warnings": _plain(self.warnings),
            "candidates": {
                "min": self.candidates_at(0),
                "median": self.candidates_at(0.5),
                "max": self.candidates_at(1),
            },
            "empty_texts": self.empty_texts,
            "nothing_to_rank": self.nothing_to_rank,
            "longest_document": self.longest,
        }


def check_lines(
    blocks: Iterable[list[RawLine]], further: Callable[[Request], Sequence[str]] = lambda _: ()
) -> CheckReport:
    """Parse every line and count; `further` has more warnings of a query.

    Memory grows only as that of `Qids`. A failed line does not take its qid: a later line with that
    qid may still be used.
    """
    report = CheckReport()
    qids = Qids()
    for block in blocks:
        for line in block:
            _check_line(report, qids, line, further)
    return report


def _check_line(
    report: CheckReport,
    qids: Qids,
    line: RawLine,
    further: Callable[[Request], Sequence[str]],
) -> None:
    report.read += 1
    try:
        parsed = parse_request(line.data)
        repeated = qids.take(parsed.request.query.qid, line)
    except LineError as error:
        report.failed.setdefault(error.kind, Finding()).add(line.number, str(error))
        return
    if repeated:
        report.repeats += 1
        return
    for warning in (*parsed.warnings, *further(parsed.request)):
        report.warnings.setdefault(warning, Finding()).add(line.number, warning)
    _count(report, parsed.request, line.number)


def _count(report: CheckReport, request: Request, number: int) -> None:
    documents = request.candidates
    report.queries += 1
    report.candidates[len(documents)] += 1
    empty = 0
    for document in documents:
        if not document.text or document.text.isspace():
            empty += 1
        if len(document.text) > report.longest:
            report.longest = len(document.text)
            report.longest_where = (number, document.docid)
    report.empty_texts += empty
    report.nothing_to_rank += len(documents) < 2 or empty == len(documents)


def _plain(findings: dict[str, Finding]) -> dict[str, object]:
    return {
        name: {
            "count": finding.count,
            "examples": [{"line": number, "reason": reason} for number, reason in finding.examples],
        }
        for name, finding in findings.items()
    }
