"""`batchrank export`: writes the rankings of a run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.loop import run_loop
from batchrank.cli.paths import check_export
from batchrank.cli.talk import Talk
from batchrank.errors import UsageError
from batchrank.formats.encoders.formats import HOLDS_TEXTS, output_format
from batchrank.formats.sources.source import Source
from batchrank.formats.wording import counted
from batchrank.results.writing import Written, write_results
from batchrank.spec.loading import load_spec
from batchrank.store.queries import coverage
from batchrank.store.records import Run
from batchrank.store.store import Store

_STORE = Path("batchrank.sqlite")


def export(
    output: Annotated[str, typer.Option("--output", "-o", help="Output file; - for stdout.")] = "-",
    store: options.StoreFile = _STORE,
    number: options.RunNumber = None,
    form: options.OutputFormatName = None,
    top_k: options.TopK = None,
    texts: Annotated[
        str | None,
        typer.Option(
            "--texts",
            metavar="QUERIES",
            help="The input again, for the texts in rankllm and rankgpt.",
            show_default=False,
        ),
    ] = None,
    history: Annotated[
        bool, typer.Option("--invocations-history", help="Put every answer in, for rankllm.")
    ] = False,
) -> None:
    """Write the rankings of a run again, in any format, whatever its gates said.

    Examples:

      batchrank export -o tonight.trec
      batchrank export --output-format rankllm --texts queries.jsonl -o tonight.jsonl
    """
    spec = load_spec(None, {"output_format": form})
    written = output_format(spec.output_format, output)
    check_export(output, store, written)
    if history and not written.startswith("rankllm"):
        raise UsageError("--invocations-history goes with --output-format rankllm or rankllm-json")
    source = None if texts is None else Source(texts)
    how = Written(written, top_k, source, history)
    left_out, lacking = run_loop(_export(store, number, output, how))
    talk = Talk()
    if lacking:
        talk.say(f"warning: {lacking}")
    for reason in left_out:
        talk.say(f"left out: {reason}")
    if written in HOLDS_TEXTS and source is None:
        talk.say(f"{written} holds the documents' texts: name the input with --texts to have them")


async def _export(
    path: Path, number: int | None, output: str, how: Written
) -> tuple[list[str], str | None]:
    """Write a run again; what of it could not be written, and what it lacks."""
    async with await Store.open(path) as store:
        run = await store.run(number)
        return await write_results(store, run, output, how), await _lacking(store, run)


async def _lacking(store: Store, run: Run) -> str | None:
    """What a run that did not get to its end lacks; None where it is whole."""
    found = await coverage(store, run.id)
    if found.is_complete:
        return None
    unread = "" if found.is_read else ", and not all of the input is in the store"
    return (
        f"run {run.id} is incomplete: {found.done:,} of its "
        f"{counted(found.lines, 'query', 'queries')} are ranked{unread}; `batchrank status` says "
        "more, `batchrank run` goes on"
    )
