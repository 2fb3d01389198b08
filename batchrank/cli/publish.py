"""`batchrank publish`: put a run's rankings where an online system looks them up."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.loop import run_loop
from batchrank.cli.paths import check_output, stored_files
from batchrank.cli.published import as_value, ending_lines, outlook_lines
from batchrank.cli.signals import stop_on_signals
from batchrank.cli.streams import print_json
from batchrank.cli.talk import Talk
from batchrank.entries import Scheme
from batchrank.errors import TargetError, UsageError
from batchrank.formats.holdings import Holding
from batchrank.formats.wording import printable, quoted
from batchrank.publishing.opening import DEFAULT_NAMESPACE, open_target, target_path
from batchrank.publishing.publication import Manner, Outlook, Publication, Published
from batchrank.publishing.source import PUBLISHED, Lifetime, Source
from batchrank.publishing.target import Generation, Target
from batchrank.spec.deadline import parse_duration
from batchrank.spec.fields import MANY
from batchrank.store.connection import is_there
from batchrank.store.lock import store_lock
from batchrank.store.store import Store
from batchrank.values import QueryStatus

_WHAT = "What is published"
_KEYS = "Keys"
_GENERATIONS = "Generations"
_REDIS = "Redis"
_MOST_JITTER = 0.9


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the flags say of the source."""

    store: Path
    number: int | None
    statuses: Sequence[QueryStatus]
    scheme: Scheme
    ungated: bool


def publish(
    source: Annotated[str, typer.Argument(metavar="STORE", help="SQLite store of the job.")],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="redis://HOST:PORT/DB, sqlite:FILE, jsonl:FILE or parquet:FILE.",
            show_default=False,
        ),
    ] = None,
    number: options.RunNumber = None,
    statuses: Annotated[
        str,
        typer.Option(
            "--status",
            metavar="LIST",
            help="Queries to publish: ok, repaired, degraded, unranked.",
            rich_help_panel=_WHAT,
        ),
    ] = ",".join(PUBLISHED),
    ttl: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="When an entry ends that no later night renews; none for never.",
            rich_help_panel=_WHAT,
        ),
    ] = "7d",
    jitter: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            callback=options.within("--jitter", 0, _MOST_JITTER),
            help="Up to this share is taken off --ttl, so that not all end at once.",
            rich_help_panel=_WHAT,
        ),
    ] = 0.1,
    ungated: Annotated[
        bool,
        typer.Option(
            "--ungated",
            help="Also a run that was rejected, killed or stopped before its deadline.",
            rich_help_panel=_WHAT,
        ),
    ] = False,
    normalise: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="What makes queries alike: nfkc, casefold, spaces; none for nothing.",
            rich_help_panel=_KEYS,
        ),
    ] = "nfkc,casefold,spaces",
    key_candidates: Annotated[
        bool,
        typer.Option(
            "--key-candidates",
            help="Keys include the set of candidates.",
            rich_help_panel=_KEYS,
        ),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Drop entries that this run doesn't have; else they stay until their TTL ends.",
            rich_help_panel=_GENERATIONS,
        ),
    ] = False,
    min_coverage: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            callback=options.within("--min-coverage", 0, 1),
            help="Refuse a generation that has less of the current keys.",
            rich_help_panel=_GENERATIONS,
        ),
    ] = 0.9,
    keep: Annotated[
        int,
        typer.Option(
            metavar="N",
            callback=options.within("--keep", 1, MANY),
            help="Generations that stay, for --rollback.",
            rich_help_panel=_GENERATIONS,
        ),
    ] = 2,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback",
            help="Publish nothing: make the generation before the current one current.",
            rich_help_panel=_GENERATIONS,
        ),
    ] = False,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="What all keys begin with.", rich_help_panel=_REDIS)
    ] = DEFAULT_NAMESPACE,
    password_env: Annotated[
        str | None,
        typer.Option(
            metavar="VARIABLE",
            help="Environment variable with the password.",
            rich_help_panel=_REDIS,
            show_default=False,
        ),
    ] = None,
    max_ops: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            callback=options.within("--max-ops", 1, MANY),
            help="Writes a second at most.",
            rich_help_panel=_REDIS,
            show_default=False,
        ),
    ] = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be written and write nothing.")
    ] = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Publish the rankings of a run as cache entries, for batchrank.cache and others to read.

    They are written beside those that are current, and become current all at once. What is
    interrupted goes on with the same command; readers notice nothing.

    Example: batchrank publish batchrank.sqlite redis://localhost:6379/0

    Example: batchrank publish sqlite:cache.sqlite --rollback
    """
    if rollback:
        found = run_loop(_rollback(_opened(target or source, namespace, password_env)))
        typer.echo(f"generation {found.number} is current again ({found.header.source})")
        return
    if target is None:
        raise UsageError("name a store and a target: batchrank publish STORE TARGET")
    store = Path(source)
    if not is_there(store):
        raise UsageError(f"there is no store at {store}")
    if (path := target_path(target)) is not None:
        # A target looks itself whether what is there are entries that it may replace.
        check_output(str(path), stored_files(store), tuple(Holding))
    asked = _Asked(store, number, _statuses(statuses), _scheme(normalise, key_candidates), ungated)
    manner = Manner(
        Lifetime(None if ttl == "none" else parse_duration(ttl), jitter),
        replace,
        min_coverage,
        keep,
        max_ops,
    )
    place = _opened(target, namespace, password_env)
    talk = Talk()
    with store_lock(store), talk:
        started = time.monotonic()
        ended = run_loop(_publish(asked, place, manner, talk, dry=dry))
    seconds = time.monotonic() - started
    if as_json:
        print_json(as_value(ended))
        return
    lines = (
        outlook_lines(ended, place) if isinstance(ended, Outlook) else ending_lines(ended, seconds)
    )
    for line in lines:
        typer.echo(printable(line))
    if isinstance(ended, Outlook) and ended.refusal is not None:
        raise TargetError(ended.refusal)


def _opened(target: str, namespace: str, password_env: str | None) -> Target:
    password = None
    if password_env is not None:
        password = os.environ.get(password_env)
        if password is None:
            raise UsageError(f"--password-env: there is no environment variable {password_env}")
    return open_target(target, namespace=namespace, password=password)


async def _rollback(target: Target) -> Generation:
    try:
        return await target.rollback()
    finally:
        await target.close()


async def _publish(
    asked: _Asked, target: Target, manner: Manner, talk: Talk, *, dry: bool
) -> Published | Outlook:
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        store = await Store.open(asked.store)
        stack.push_async_callback(store.close)
        stack.push_async_callback(target.close)
        source = await Source.of(
            store,
            await store.run(asked.number),
            asked.statuses,
            asked.scheme,
            ungated=asked.ungated,
        )
        publication = Publication(
            source,
            target,
            manner,
            tick=lambda share, what: talk.show(share, what, time.monotonic() - started),
        )
        if dry:
            return await publication.outlook()
        stop_on_signals(publication, talk)
        return await publication.run()


def _statuses(text: str) -> list[QueryStatus]:
    try:
        return [QueryStatus(name.strip()) for name in text.split(",")]
    except ValueError:
        raise UsageError(
            f"--status {quoted(text)}: use some of ok, repaired, degraded, unranked"
        ) from None


def _scheme(normalise: str, candidates: bool) -> Scheme:
    try:
        steps = Scheme.parse(normalise).steps
    except ValueError:
        raise UsageError(
            f"--normalise {quoted(normalise)}: use some of nfkc, casefold, spaces, or none"
        ) from None
    return Scheme(steps, candidates)
