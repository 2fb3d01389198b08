"""Draws queries from all over an input, the same ones each time."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from batchrank.errors import DiskError, LineError, UsageError
from batchrank.formats.requests import parse_request
from batchrank.formats.sources.source import Source, read_queries
from batchrank.formats.wording import quoted
from batchrank.measuring.scratch import scratch_folder
from batchrank.values import Request

_SEED = 1


@dataclass(frozen=True, slots=True)
class Sample:
    """Some queries of an input, in its order: parsed, and as a file of their own in `folder`."""

    folder: Path
    file: Path
    requests: tuple[Request, ...]


@contextmanager
def sampled(source: Source, count: int, judged: Container[str] | None) -> Iterator[Sample]:
    """Draw `count` queries with two candidates at least; with `judged`, of these qids alone.

    The input is cut into `count` equal parts and one query is drawn from each, so that a log that
    changes along its way is seen whole. It is read twice, and only line numbers are kept. Leaving
    the context removes the file. Raises UsageError where nothing can be drawn.
    """
    if not source.is_seekable:
        raise UsageError("a sample is drawn from a file, which is read twice: a pipe can't be")
    numbers = _usable(source, judged)
    if not numbers:
        of = "with judgements in --qrels " if judged is not None else ""
        raise UsageError(
            f"{quoted(source.path)} has no query {of}and at least two candidates: nothing to try"
        )
    lines = _lines(source, set(_spread(numbers, count)))
    requests = tuple(parse_request(line).request for line in lines)
    with scratch_folder() as folder:
        file = folder / "sample.jsonl"
        try:
            file.write_bytes(b"".join(line + b"\n" for line in lines))
        except OSError as error:
            raise DiskError(
                f"the sample {file} can't be written ({error.strerror or error}): free space "
                "there, or set TMPDIR to another folder"
            ) from error
        yield Sample(folder, file, requests)


def _usable(source: Source, judged: Container[str] | None) -> list[int]:
    """Numbers of the lines that can be drawn; of lines with one qid the first."""
    numbers: list[int] = []
    seen: set[str] = set()
    for block in read_queries(source):
        for line in block:
            try:
                request = parse_request(line.data).request
            except LineError:
                continue
            qid = request.query.qid
            if qid not in seen and len(request.candidates) > 1:
                seen.add(qid)
                if judged is None or qid in judged:
                    numbers.append(line.number)
    return numbers


def _spread(numbers: list[int], count: int) -> Iterator[int]:
    """One of each of `count` equal parts, all where there are fewer."""
    random = Random(_SEED)  # noqa: S311 - no secret
    count = min(count, len(numbers))
    for part in range(count):
        start, end = (len(numbers) * edge // count for edge in (part, part + 1))
        yield numbers[random.randrange(start, end)]


def _lines(source: Source, numbers: set[int]) -> list[bytes]:
    return [line.data for block in read_queries(source) for line in block if line.number in numbers]
