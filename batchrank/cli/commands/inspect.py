"""`batchrank inspect`: looks at one query, its ranking and every answer behind it."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.loop import run_loop
from batchrank.cli.streams import print_json
from batchrank.errors import UsageError
from batchrank.formats.wording import one_line, printable
from batchrank.ranking.replay import Replayed
from batchrank.results.inspection import Inspected, as_document, inspected
from batchrank.spec.fields import MANY, MOST
from batchrank.spec.walltime import local
from batchrank.store.queries import find_query, on_line
from batchrank.store.records import Run
from batchrank.store.store import Store

_COMPARED = 5000


def inspect(
    qid: Annotated[
        str | None, typer.Argument(metavar="[QID]", help="The query to look at.")
    ] = None,
    line: Annotated[
        int | None,
        typer.Option(
            "--line",
            callback=options.within("--line", 1, MOST),
            help="Line of the input, where a failed one has no qid.",
        ),
    ] = None,
    store: options.StoreFile = Path("batchrank.sqlite"),
    number: options.RunNumber = None,
    top_k: Annotated[
        int,
        typer.Option(
            "--top-k", callback=options.within("--top-k", 1, MANY), help="Documents shown."
        ),
    ] = 20,
    as_json: options.JsonFlag = False,
) -> None:
    """Show one query: where each document came from, and every window with its raw answer.

    With --json an array with an object for each line of the input that has this qid.

    Examples:

      batchrank inspect q17
      batchrank inspect --line 7 --run 3
    """
    if (qid is None) == (line is None):
        raise UsageError("name a query by its QID, or by --line N of the input")
    run, found = run_loop(_inspect(store, number, qid, line))
    if as_json:
        print_json([as_document(one, run.settings, top_k) for one in found])
        return
    for number_of_line, ranked, windows in found:
        typer.echo(f"{one_line(ranked.qid) or 'no qid'}: {one_line(ranked.query) or 'no query'}")
        model = one_line(run.settings["model"])
        typer.echo(f"line {number_of_line}, {ranked.status}, model {model}")
        if (lineage := ranked.lineage) is not None and ranked.is_incremental:
            full = local(lineage.full_at)
            typer.echo(
                f"builds on the ranking of run {lineage.run}; ranked in full {full:%Y-%m-%d %H:%M}"
            )
        if ranked.error is not None:
            typer.echo(f"{ranked.error_kind}: {one_line(ranked.error)}")
        reasons = dict(ranked.filtered)
        for rank, place in enumerate(ranked.order[:top_k], 1):
            why = f"  (filtered: {one_line(reasons[place])})" if place in reasons else ""
            typer.echo(f"{rank:>5} (was {place + 1:>3})  {one_line(ranked.docids[place])}{why}")
        if (more := len(ranked.order) - top_k) > 0:
            typer.echo(f"      and {more} more (--top-k)")
        for count, window in enumerate(windows, 1):
            _print_window(count, window)


def _print_window(count: int, asked: Replayed) -> None:
    permutation = asked.permutation
    notes = f" ({', '.join(permutation.notes)})" if permutation.notes else ""
    typer.echo(f"\nwindow {count}, round {asked.round + 1}: {permutation.status}{notes}")
    shown = ", ".join(f"[{n}] {docid}" for n, docid in enumerate(asked.window.shown, 1))
    typer.echo(f"  shown   {one_line(shown)}")
    named = permutation.order[: permutation.named]
    typer.echo(f"  named   {one_line(', '.join(named)) or 'none'}")
    if permutation.scores is not None:
        typer.echo(f"  scores  {', '.join(f'{score:.3f}' for score in permutation.scores)}")
    if asked.answer is not None:
        typer.echo(f"  answer  {printable(asked.answer.text)!r}")
        if asked.answer.reasoning:
            typer.echo(f"  thought {printable(asked.answer.reasoning[:500])!r}")
    if asked.fault is not None:
        typer.echo(f"  fault   {one_line(asked.fault)}")


async def _inspect(
    path: Path, number: int | None, qid: str | None, line: int | None
) -> tuple[Run, list[Inspected]]:
    async with await Store.open(path) as store:
        run = await store.run(number)
        if line is not None:
            found = await on_line(store, run.id, line)
        else:
            assert qid is not None
            found = await find_query(store, run.id, qid)
        if not found:
            what = f"query {qid!r}" if line is None else f"ranking of line {line}"
            near = "" if qid is None else await _nearest(store, run, qid)
            raise UsageError(f"run {run.id} of store {path} has no {what}{near}")
        return run, await inspected(store, run, found)


async def _nearest(store: Store, run: Run, qid: str) -> str:
    """Suggest a qid much like the one that is missing, of the first few thousand of a run."""
    qids: list[str] = []
    async for chunk in store.rows(run.id):
        qids += [ranked.qid for _, ranked in chunk]
        if len(qids) >= _COMPARED:
            break
    near = get_close_matches(qid, qids, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
