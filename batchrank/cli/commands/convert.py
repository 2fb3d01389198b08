"""`batchrank convert`: from one format to another, without ranking."""

from __future__ import annotations

from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.paths import check_output
from batchrank.cli.talk import Talk
from batchrank.errors import UsageError
from batchrank.formats.convert import convert
from batchrank.formats.encoders.formats import output_format
from batchrank.formats.holdings import Holding
from batchrank.formats.sources.source import files_of
from batchrank.formats.wording import counted
from batchrank.running.inputs import source_of
from batchrank.spec.loading import load_spec


def convert_command(
    queries: options.InputFile,
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="File; - for stdout.")],
    from_: options.From = None,
    to: options.To = None,
    corpus: options.Corpus = None,
    topics: options.Topics = None,
    run_file: options.RunFile = None,
    limit: options.Limit = None,
) -> None:
    """Write QUERIES in another format, without ranking.

    Lines that can't be used, or that the format can't hold, are left out and named; exit code 2
    where there are any. Where none can be written, an old OUTPUT stays.

    Examples:

      batchrank convert queries.jsonl queries.parquet
      batchrank convert bm25.trec queries.jsonl --corpus corpus.tsv --topics topics.tsv
      batchrank convert scifact/ - --to rankllm
    """
    texts = {"corpus": corpus, "topics": topics, "run_file": run_file, "limit": limit}
    spec = load_spec(None, {"format": from_, "output_format": to, **texts})
    source = source_of(spec, queries)
    check_output(output, files_of(source), (Holding.QUERIES,), by=None)
    form = output_format(spec.output_format, output)
    found = convert(source, output, form, spec.limit)
    talk = Talk()
    if form == "trec":
        talk.say("a TREC run holds qids, docids and scores alone: the texts are left out")
    for said in (*found.notes, *found.query_warnings.lines()):
        talk.say(said)
    for reason in found.reasons:
        talk.say(f"left out: {reason}")
    if (more := found.left_out - len(found.reasons)) > 0:
        talk.say(f"and {more:,} more")
    talk.say(f"{counted(found.queries, 'query', 'queries')} written, {found.left_out:,} left out")
    raise typer.Exit(UsageError.exit_code if found.left_out else 0)
