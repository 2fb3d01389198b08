"""`batchrank publish`: put a run's rankings where an online system looks them up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.display.published import as_value, current_again, ending_lines, outlook_lines
from batchrank.cli.display.runs import BY_HAND
from batchrank.cli.loop import run_loop
from batchrank.cli.paths import check_output, stored_files
from batchrank.cli.signals import stop_on_signals
from batchrank.cli.streams import print_json
from batchrank.cli.talk import Talk
from batchrank.errors import BatchrankError, TargetError, UsageError
from batchrank.formats.holdings import Holding
from batchrank.formats.wording import printable
from batchrank.publishing.making import publication_of, target_of
from batchrank.publishing.opening import is_target, target_path
from batchrank.publishing.publication import Outlook, Published
from batchrank.publishing.target import Generation, Target
from batchrank.spec.loading import make_publish_spec
from batchrank.spec.publishspec import PublishSpec
from batchrank.store.connection import is_there
from batchrank.store.lock import store_lock
from batchrank.store.store import Store

_WHAT = "What is published"
_KEYS = "Keys"
_GENERATIONS = "Generations"
_REDIS = "Redis"


def _flag(field: str, name: str, *, panel: str, metavar: str | None = None) -> object:
    return options.setting(field, name, panel=panel, metavar=metavar, shape=PublishSpec)


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
    status: Annotated[str | None, _flag("status", "--status", panel=_WHAT, metavar="LIST")] = None,
    ttl: Annotated[str | None, _flag("ttl", "--ttl", panel=_WHAT, metavar="DURATION")] = None,
    jitter: Annotated[
        float | None, _flag("jitter", "--jitter", panel=_WHAT, metavar="SHARE")
    ] = None,
    ungated: Annotated[bool | None, _flag("ungated", "--ungated", panel=_WHAT)] = None,
    normalise: Annotated[
        str | None, _flag("normalise", "--normalise", panel=_KEYS, metavar="LIST")
    ] = None,
    key_candidates: Annotated[
        bool | None, _flag("key_candidates", "--key-candidates", panel=_KEYS)
    ] = None,
    replace: Annotated[bool | None, _flag("replace", "--replace", panel=_GENERATIONS)] = None,
    min_coverage: Annotated[
        float | None, _flag("min_coverage", "--min-coverage", panel=_GENERATIONS, metavar="SHARE")
    ] = None,
    keep: Annotated[int | None, _flag("keep", "--keep", panel=_GENERATIONS, metavar="N")] = None,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback",
            help="Publish nothing: make the generation before the current one current.",
            rich_help_panel=_GENERATIONS,
        ),
    ] = False,
    namespace: Annotated[
        str | None, _flag("namespace", "--namespace", panel=_REDIS, metavar="NAME")
    ] = None,
    password_env: Annotated[
        str | None, _flag("password_env", "--password-env", panel=_REDIS, metavar="VARIABLE")
    ] = None,
    max_ops: Annotated[int | None, _flag("max_ops", "--max-ops", panel=_REDIS, metavar="N")] = None,
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
    flags = {name: value for name, value in locals().items() if name in PublishSpec.model_fields}
    given = {name: value for name, value in flags.items() if value is not None}
    if rollback:
        place = target_of(make_publish_spec({**given, "target": target or source}, given))
        found = run_loop(_rollback(place, dry=dry))
        if as_json:
            print_json(current_again(found, dry=dry))
            return
        is_now = "would be" if dry else "is"
        _print([f"generation {found.number} {is_now} current again ({found.header.source})"])
        return
    if target is None:
        raise UsageError("name a store and a target: batchrank publish STORE TARGET")
    spec = make_publish_spec(given, given)
    store = Path(source)
    if is_target(source) and not store.exists():
        raise UsageError("the store comes first: batchrank publish STORE TARGET")
    if not is_there(store):
        raise UsageError(f"there is no store at {store}")
    if (path := target_path(spec.target)) is not None:
        # A target looks itself whether what is there are entries that it may replace.
        check_output(str(path), stored_files(store), tuple(Holding), by=None)
    talk = Talk()
    with store_lock(store), talk:
        started = time.monotonic()
        ended = run_loop(_publish(store, number, spec, talk, dry=dry))
    seconds = time.monotonic() - started
    if as_json:
        print_json(as_value(ended))
    elif isinstance(ended, Outlook):
        _print(outlook_lines(ended, target_of(spec)))
    else:
        _print(ending_lines(ended, seconds))
    if isinstance(ended, Outlook) and ended.refusal is not None:
        raise TargetError(ended.refusal)


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        typer.echo(printable(line))


async def _rollback(target: Target, *, dry: bool) -> Generation:
    try:
        return await (target.previous() if dry else target.rollback())
    finally:
        await target.close()


async def _publish(
    store: Path, number: int | None, spec: PublishSpec, talk: Talk, *, dry: bool
) -> Published | Outlook:
    started = time.monotonic()

    def tick(share: float, what: str) -> None:
        talk.show(share, what, time.monotonic() - started)

    async with publication_of(store, number, spec, tick) as publication:
        if dry:
            return await publication.outlook()
        stop_on_signals(publication, talk)
        where = publication.target.name
        run = await _keep(store, number, f"{where}: begun, and not ended or killed")
        try:
            ended = await publication.run()
        except BatchrankError as error:
            await _keep(store, run, f"{where}: failed: {error}")
            raise
        await _keep(store, run, f"{where}: {ending_lines(ended, time.monotonic() - started)[0]}")
        return ended


async def _keep(path: Path, number: int | None, told: str) -> int | None:
    """Let `status` tell of it; a store that takes no more is not worth what was published."""
    with suppress(BatchrankError):
        async with await Store.open(path) as store:
            run = await store.run(number)
            await store.end_step(run.id, BY_HAND, told)
            return run.id
    return number
