"""`batchrank label`: weak judgements by a model, and a person's corrections of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.commands.run import run
from batchrank.cli.display.tuned import checked_lines, label_lines
from batchrank.cli.settings import settings_of
from batchrank.cli.streams import print_json
from batchrank.cli.trials import (
    NO_MATTER,
    OF_ONE_WINDOW,
    STORE,
    SampleSize,
    Say,
    TrialStore,
    check_result,
    try_on,
)
from batchrank.errors import UsageError
from batchrank.formats.atomic import AtomicFile
from batchrank.formats.holdings import Holding, holding
from batchrank.formats.sources.source import files_of
from batchrank.formats.wording import quoted
from batchrank.measuring.labelling import (
    Label,
    compare_grades,
    label,
    read_labels,
    write_labels,
    write_qrels,
)
from batchrank.measuring.sampling import sampled
from batchrank.measuring.trials import Trials
from batchrank.running.inputs import source_of
from batchrank.spec.loading import load_spec
from batchrank.spec.stagespec import StageSpec


@settings_of(run, without={*NO_MATTER, *StageSpec.model_fields, *OF_ONE_WINDOW})
def label_command(
    settings: Mapping[str, object],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Qrels that are written.")
    ],
    queries: Annotated[
        str | None,
        typer.Argument(metavar="[QUERIES]", help=options.SAMPLED),
    ] = None,
    corrected: Annotated[
        Path | None,
        typer.Option("--corrected", metavar="FILE", help="Take back the labels a person checked."),
    ] = None,
    check: Annotated[
        float,
        typer.Option(
            "--check",
            callback=options.within("--check", 0, 1),
            help="Share marked for a person to check.",
        ),
    ] = 0.2,
    sample: SampleSize = 50,
    store: TrialStore = STORE,
    job: options.SpecFile = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Make weak judgements (0 to 2) by the model, with some marked for a person; take them back.

    Examples:

      batchrank label queries.jsonl -o weak.qrels      # and weak.check.jsonl, for a person
      batchrank label --corrected weak.check.jsonl -o judged.qrels
    """
    base = load_spec(job, settings)
    if (queries is None) == (corrected is None):
        raise UsageError("label takes QUERIES, or a file that was corrected, with --corrected FILE")
    if corrected is not None:
        reads = {"the job spec": job, "the corrected file": corrected}
        check_result(output, store, reads, (Holding.JUDGEMENTS,))
        labels = read_labels(corrected)
        checked = compare_grades(labels)
        made = write_qrels(labels)
        _keep_judgements(output, made)
        _write(output, made)
        if as_json:
            print_json(checked)
        else:
            typer.echo("\n".join([*checked_lines(checked), f"written to {output}"]))
        return
    assert queries is not None
    source = source_of(base, queries)
    read = {**files_of(source), "the job spec": job}
    check_result(output, store, read, (Holding.JUDGEMENTS,))
    to_check = output.with_suffix(".check.jsonl")
    check_result(to_check, store, {**read, "its own qrels": output})
    _keep_judgements(output, _made_with(to_check))
    with sampled(source, sample, None) as drawn:

        async def work(trials: Trials, _say: Say) -> list[Label]:
            return await label(trials, drawn, base, check)

        labels = try_on(drawn, store, work)
    _write(output, write_qrels(labels))
    _write(to_check, write_labels(labels))
    if as_json:
        print_json(labels)
    else:
        typer.echo("\n".join(label_lines(labels, output, to_check)))


def _write(path: Path, data: bytes) -> None:
    with AtomicFile(str(path)) as file:
        file.write(data)


def _made_with(to_check: Path) -> bytes | None:
    """The qrels that were written together with a file to check, None where there is none."""
    return write_qrels(read_labels(to_check)) if to_check.exists() else None


def _keep_judgements(output: Path, own: bytes | None) -> None:
    """Refuse to write over judgements other than `own`: a person's; raises UsageError."""
    if holding(output) is Holding.JUDGEMENTS and output.read_bytes() != own:
        raise UsageError(
            f"the output {quoted(output)} holds other judgements: choose another with -o, or "
            "remove it first"
        )
