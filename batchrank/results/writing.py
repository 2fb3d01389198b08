"""Writes a run's rows from the store, in input order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from batchrank.errors import LineError, UsageError
from batchrank.formats.atomic import AtomicFile
from batchrank.formats.encoders.base import Encoder
from batchrank.formats.encoders.formats import HOLDS_TEXTS, make_encoder
from batchrank.formats.rows import FilteredDoc, Invocation, RankedDoc, Row, RowError
from batchrank.formats.sources.source import Source
from batchrank.formats.wording import counted, quoted
from batchrank.ranking.replay import replay
from batchrank.results.texts import Texts
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import OutputFormat, RankedQuery


@dataclass(frozen=True, slots=True)
class Written:
    """How rows are written: the best `top_k` of each, in a format.

    `texts` is the input again, for formats that hold the documents' texts, which no store keeps;
    `history` puts RankLLM's `invocations_history` in. A file without any row is written only where
    it `may_be_empty`.
    """

    form: OutputFormat
    top_k: int | None = None
    texts: Source | None = None
    history: bool = False
    may_be_empty: bool = False


async def write_results(store: Store, run: Run, path: str, how: Written) -> list[str]:
    """Write all rows of `run` to `path` (`-` for stdout), whole or not at all.

    Returns a sentence for each row that the format can't hold. Raises DiskError, and UsageError
    where it can hold none, a package is missing or the input with the texts can't be read.
    """
    encoder = make_encoder(how.form, f"batchrank-{run.settings['model']}")
    texts = Texts(how.texts) if how.form in HOLDS_TEXTS else None
    left_out: list[str] = []
    count = 0
    file = await asyncio.to_thread(AtomicFile, path)
    await asyncio.to_thread(file.__enter__)
    failure: BaseException | None = None
    try:
        async for chunk in store.rows(run.id):
            count += len(chunk)
            rows = [make_row(line, ranked, run.settings) for line, ranked in chunk]
            if how.history:
                rows = [
                    replace(row, invocations=await _invocations(ranked, run.settings, store))
                    for row, (_, ranked) in zip(rows, chunk, strict=True)
                ]
            await asyncio.to_thread(_write, file, encoder, rows, how.top_k, texts, left_out)
        if left_out and len(left_out) == count and not how.may_be_empty:
            raise UsageError(
                f"{quoted(path)} stays as it is, since {how.form} can hold none of the "
                f"{counted(count, 'row')} ({left_out[0]}): `batchrank export` writes them in "
                "another format"
            )
        await asyncio.to_thread(lambda: file.write(encoder.end()))
    except BaseException as error:
        failure = error
        raise
    finally:
        kind = type(failure) if failure else None
        await asyncio.to_thread(file.__exit__, kind, failure, None)
    return [*left_out, *(texts.missing() if texts else ())]


def _write(
    file: AtomicFile,
    encoder: Encoder,
    rows: Sequence[Row],
    top_k: int | None,
    texts: Texts | None,
    left_out: list[str],
) -> None:
    for row in rows:
        written = row if top_k is None else replace(row, ranking=row.ranking[:top_k])
        if texts is not None:
            written = replace(written, documents=texts.of(row))
        try:
            file.write(encoder.add(written))
        except LineError as error:
            left_out.append(f"line {row.line}: {error}")
            continue
        if texts is not None:
            texts.wrote(written)


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
    docids, scores, above = ranked.docids, ranked.scores, len(ranked.docids) + 1
    ranking = [
        RankedDoc(docids[place], rank, place + 1, above - rank, scores[place])
        for rank, place in enumerate(ranked.order, 1)
    ]
    reasons = dict(ranked.filtered)
    for index, place in enumerate(ranked.order if reasons else ()):
        if place in reasons:
            ranking[index] = FilteredDoc(**asdict(ranking[index]), filtered=reasons[place])
    return ranking


async def _invocations(
    ranked: RankedQuery, settings: dict[str, Any], store: Store
) -> list[Invocation]:
    """In RankLLM's words a call for each window that was answered, in the strategy's order."""
    return [
        Invocation(
            prompt=None,
            shown=one.window.shown,
            response=one.answer.text,
            input_token_count=one.answer.usage.prompt_tokens,
            output_token_count=one.answer.usage.completion_tokens,
        )
        for one in await replay(ranked, settings, store)
        if one.answer is not None
    ]
