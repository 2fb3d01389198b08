"""What the commands that try jobs on a sample share: their flags, their store, how they stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from batchrank.cli.loop import run_loop
from batchrank.cli.options import OF_WATCHING, within
from batchrank.cli.paths import check_output, stored_files
from batchrank.cli.signals import stop_on_signals
from batchrank.cli.talk import Talk
from batchrank.errors import StoppedError, UsageError
from batchrank.formats.holdings import Holding
from batchrank.measuring.sampling import Sample
from batchrank.measuring.trials import OF_A_NIGHT, Trials
from batchrank.spec.fields import MANY

T = TypeVar("T")
Say = Callable[[str], None]

TrialStore = Annotated[
    Path,
    typer.Option(
        "--store", help="SQLite store of all that is tried, apart from that of the nights."
    ),
]
SampleSize = Annotated[
    int,
    typer.Option(
        "--sample",
        callback=within("--sample", 1, MANY),
        help="Queries that are tried, from all over the file.",
    ),
]
STORE = Path("batchrank-trials.sqlite")
NO_MATTER = frozenset((*(*OF_A_NIGHT, *OF_WATCHING, "shard", "log_format"),))
"""Settings of a run that mean nothing where jobs are tried on a sample."""
OF_ONE_WINDOW = frozenset(
    (
        *("preset", "strategy", "stride", "winners", "passes", "merge_passes"),
        *("tournaments", "method", "top_k"),
    )
)
"""Settings that say nothing of a single window of each query."""


def try_on(
    sample: Sample,
    store: Path,
    work: Callable[[Trials, Say], Awaitable[T]],
    most_calls: int | None = None,
) -> T:
    """Do `work`, which tries jobs; signals end it cleanly, and what it says goes to stderr.

    With a store that stays, the StoppedError of one that was stopped says that it can be resumed.
    """

    async def doing() -> T:
        with Talk() as talk:
            trials = Trials(sample, store, most_calls=most_calls, say=talk.say, tick=talk.tick)
            stop_on_signals(trials, talk)
            return await work(trials, talk.say)

    try:
        return run_loop(doing())
    except StoppedError as error:
        if store.parent == sample.folder:
            raise
        raise type(error)(f"{error}; the same command goes on where this one stopped") from error


def check_result(
    output: Path,
    store: Path,
    reads: Mapping[str, Path | None],
    replaces: Container[Holding] = (),
) -> None:
    """See that `output` is a file that can be written and none of those read or the store's.

    `replaces` is what of a person's it may hold, where the command looks after that itself.
    Raises UsageError.
    """
    if str(output) == "-":
        raise UsageError("the result is a file beside what is printed: give -o FILE")
    kept = {what: path for what, path in reads.items() if path is not None}
    check_output(str(output), {**stored_files(store), **kept}, replaces)
