"""`batchrank report`: a run on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.commands.measure import cost_of
from batchrank.cli.loop import run_loop
from batchrank.cli.paths import check_output, stored_files
from batchrank.reporting import Wanted, write_report


def report(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="SQLite store of the job.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The page; - for stdout.")
    ],
    number: options.RunNumber = None,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", help="Judgements, in TREC format.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="OTHER", help="Another run: a store, STORE#ID, or an output."
        ),
    ] = None,
    job: options.PriceFile = None,
) -> None:
    """Write a run as one page that needs no network: open it in any browser, or send it on.

    Examples:

      batchrank report batchrank.sqlite -o report.html
      batchrank report night.sqlite -o report.html --qrels judged.qrels --against night.sqlite#4
    """
    others = {"the judgements": qrels, "the other run": against, "the job spec": job}
    reads = {what: path for what, path in others.items() if path is not None}
    check_output(output, {**stored_files(store), **reads})
    wanted = Wanted(store, number, qrels, against, None if job is None else cost_of(job))
    run_loop(write_report(wanted, output))
