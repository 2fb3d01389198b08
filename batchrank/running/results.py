"""Writes a run's rows from the store, in input order."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from batchrank.errors import LineError
from batchrank.formats.atomic import AtomicFile
from batchrank.formats.rows import (
    FilteredDoc,
    RankedDoc,
    Row,
    RowError,
    encode_jsonl,
    encode_trec,
)
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import OutputFormat, RankedQuery

_ENDINGS: dict[str, OutputFormat] = {".trec": "trec", ".run": "trec"}
_INPUTS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".trec", ".run")
_REJECTED = ".rejected"


def output_format(given: OutputFormat | None, path: str) -> OutputFormat:
    """The format of an output: the one that is given, or as the name ends, or JSONL."""
    plain = path.removesuffix(_REJECTED).removesuffix(".gz").removesuffix(".zst")
    return given or _ENDINGS.get(Path(plain).suffix, "jsonl")


def default_output(source: str, form: OutputFormat) -> str:
    """Where the result goes if nobody says: beside the input, or to stdout if that is a pipe."""
    if source == "-":
        return "-"
    path = Path(source.removesuffix(".gz").removesuffix(".zst"))
    stem = path.with_suffix("") if path.suffix in _INPUTS else path
    return f"{stem}.ranked.{form}"


def rejected_name(output: str) -> str | None:
    """Where a result goes that passes no gate: nowhere if the output is a pipe."""
    return None if output == "-" else f"{output}{_REJECTED}"


def summary_name(output: str) -> str | None:
    """Where it is kept how the run of a result ended: nowhere if the output is no file."""
    path = Path(output)
    is_no_file = output == "-" or (path.exists() and not path.is_file())
    return None if is_no_file else f"{output}.summary.json"


def state_of(path: str, form: OutputFormat, top_k: int | None) -> dict[str, object] | None:
    """What tells whether the file written to `path` is still as it was; None for a pipe."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return {
        "path": os.path.realpath(path),
        "format": form,
        "top_k": top_k,
        "inode": found.st_ino,
        "size": found.st_size,
        "changed_ns": found.st_mtime_ns,
    }


async def write_results(
    store: Store, run: Run, path: str, form: OutputFormat, top_k: int | None
) -> list[str]:
    """Write all rows of `run` to `path` (`-` for stdout), whole or not at all.

    Returns a sentence for each row that the format can't hold. Raises DiskError.
    """
    left_out: list[str] = []
    held: set[str] = set()
    file = await asyncio.to_thread(AtomicFile, path)
    await asyncio.to_thread(file.__enter__)
    failure: BaseException | None = None
    try:
        async for chunk in store.rows(run.id):
            await asyncio.to_thread(_write, file, run.settings, chunk, form, top_k, left_out, held)
    except BaseException as error:
        failure = error
        raise
    finally:
        kind = type(failure) if failure else None
        await asyncio.to_thread(file.__exit__, kind, failure, None)
    return left_out


def _write(
    file: AtomicFile,
    settings: dict[str, Any],
    chunk: Sequence[tuple[int, RankedQuery]],
    form: OutputFormat,
    top_k: int | None,
    left_out: list[str],
    held: set[str],
) -> None:
    """Write a chunk; a TREC run holds each qid once, so `held` has those that it holds."""
    for line, ranked in chunk:
        row = make_row(line, ranked, settings)
        if form == "jsonl":
            file.write(encode_jsonl(row, top_k))
            continue
        if ranked.qid in held or (ranked.error_kind is not None and not ranked.tally.windows):
            why = "its qid stands in the run already" if ranked.qid in held else ranked.error
            left_out.append(f"line {line}: {why}")
            continue
        held.add(ranked.qid)
        try:
            file.write(encode_trec(row, f"batchrank-{settings['model']}", top_k))
        except LineError as error:
            left_out.append(f"line {line}: {error}")


def make_row(line: int, ranked: RankedQuery, settings: dict[str, Any]) -> Row:
    """The output row of a stored outcome; `settings` are those of its job."""
    tally = ranked.tally
    return Row(
        qid=ranked.qid or None,
        query=ranked.query or None,
        status=ranked.status,
        ranking=_ranking(ranked),
        windows={
            "ok": tally.ok,
            "repaired": tally.repaired,
            "fallback": tally.fallback,
            "error": tally.error,
        },
        calls=ranked.calls,
        prompt_tokens=ranked.usage.prompt_tokens,
        completion_tokens=ranked.usage.completion_tokens,
        model=settings["model"],
        template=settings["template"],
        error=RowError(ranked.error_kind, ranked.error or "") if ranked.error_kind else None,
        line=line,
        reduced=ranked.reduced,
        incremental=ranked.is_incremental,
    )


def _ranking(ranked: RankedQuery) -> list[RankedDoc]:
    count = len(ranked.docids)
    reasons = dict(ranked.filtered)
    ranking = []
    for rank, place in enumerate(ranked.order, 1):
        docid, score = ranked.docids[place], ranked.scores[place]
        at = (docid, rank, place + 1, count - rank + 1, score)
        ranking.append(FilteredDoc(*at, reasons[place]) if place in reasons else RankedDoc(*at))
    return ranking
