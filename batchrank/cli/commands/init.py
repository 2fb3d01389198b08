"""`batchrank init`: a first job spec for an input."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from batchrank.backends.discovery import PLACES, Found, Place, look
from batchrank.cli import options
from batchrank.cli.loop import run_loop
from batchrank.cli.paths import check_output
from batchrank.errors import NoServerError, UsageError
from batchrank.formats.atomic import write_new
from batchrank.formats.sources.source import Source, files_of, read_queries
from batchrank.formats.wording import counted, printable, quoted
from batchrank.nightly.starter import starter_spec
from batchrank.nightly.survey import survey

_LINES = 1000
"""Enough to see what an input is like."""


def init(
    queries: Annotated[
        str, typer.Argument(metavar="QUERIES", help="Queries with candidates, in a file.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The job spec to write.")
    ] = Path("nightly.toml"),
    corpus: options.Corpus = None,
    topics: options.Topics = None,
    run_file: options.RunFile = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url",
            metavar="URL",
            help="The model server (default: those of this machine).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a job spec for QUERIES with comments, after a look at the file and the model servers.

    Examples:

      batchrank init queries.jsonl -o nightly.toml
      batchrank init bm25.trec --corpus corpus.tsv --topics topics.tsv
    """
    if queries == "-":
        raise UsageError("a job spec needs a file as its input: name one")
    source = Source(queries, corpus=corpus, topics=topics, run_file=run_file)
    check_output(str(output), files_of(source))
    seen = survey(read_queries(source, _LINES))
    if not seen.queries:
        raise UsageError(f"no line of {quoted(queries)} can be used: `batchrank check` says why")
    servers = run_loop(look(_places(base_url)))
    if base_url is not None and not servers:
        raise NoServerError(f"no model server answers at {base_url}")
    today = datetime.now(UTC).astimezone().date()
    named = servers[:1] if base_url else servers
    text = starter_spec(source, output.stem, seen, named, today)
    write_new(output, text)
    typer.echo(
        f"{printable(str(output))}: {counted(seen.queries, 'query', 'queries')} looked at, "
        f"{_named(servers)}"
    )
    typer.echo(f"next: batchrank doctor --job {shlex.quote(printable(str(output)))}")


def _places(base_url: str | None) -> tuple[Place, ...]:
    if base_url is None:
        return PLACES
    url = base_url.rstrip("/").removesuffix("/v1")
    return (Place("Ollama", url, "ollama"), Place("the server", url))


def _named(servers: tuple[Found, ...]) -> str:
    if not servers:
        return "no model server found, so the embedded model is named"
    return f"{servers[0].name} at {servers[0].url} named as the model server"
