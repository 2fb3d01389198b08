"""`diagnose` and `tune`: what a model does with this input, and what is best for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.commands.run import run
from batchrank.cli.display.tuned import (
    diagnosis_lines,
    is_tuned,
    spec_comment,
    tuning_lines,
    tuning_value,
)
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
from batchrank.formats.atomic import AtomicFile
from batchrank.formats.holdings import Holding
from batchrank.formats.sources.source import files_of
from batchrank.formats.toml import write_toml
from batchrank.formats.trec import read_qrels
from batchrank.measuring.diagnosis import Diagnosis, diagnose
from batchrank.measuring.grid import DEFAULT_GRID, read_grid
from batchrank.measuring.sampling import sampled
from batchrank.measuring.trials import Trials
from batchrank.measuring.tuning import Tuning, tune
from batchrank.metrics.evaluation import NDCG, parse_measures
from batchrank.running.inputs import source_of
from batchrank.spec.fields import MANY, MOST
from batchrank.spec.loading import load_spec

_TUNED = Path("tuned.toml")


@settings_of(run, without={*NO_MATTER, *OF_ONE_WINDOW})
def diagnose_command(
    settings: Mapping[str, object],
    queries: options.SampledFile,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", help="Judgements: what a pass really changes.")
    ] = None,
    sample: SampleSize = 50,
    store: TrialStore = STORE,
    job: options.SpecFile = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Say how the model leans on the prompt's order, and whether more passes are worth their cost.

    One window of each sampled query is shown in first-stage, reversed and shuffled order.

    Example: batchrank diagnose queries.jsonl --model qwen3:8b
    """
    base = load_spec(job, settings)
    parse_measures([NDCG])
    judged = None if qrels is None else read_qrels(qrels)

    async def work(trials: Trials, _say: Say) -> Diagnosis:
        return await diagnose(trials, base, judged)

    with sampled(source_of(base, queries), sample, judged) as drawn:
        found = try_on(drawn, store, work)
    if as_json:
        print_json(found)
    else:
        typer.echo("\n".join(diagnosis_lines(found)))


@settings_of(run, without=NO_MATTER)
def tune_command(
    settings: Mapping[str, object],
    queries: options.SampledFile,
    qrels: options.QrelsFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Job spec that is written.")
    ] = _TUNED,
    grid: Annotated[
        Path | None,
        typer.Option(
            "--grid",
            metavar="FILE",
            help="TOML of settings to try (default: one change at a time).",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="CALLS",
            callback=options.within("--budget", 1, MOST),
            help="Most calls for windows.",
        ),
    ] = None,
    generated_weight: Annotated[
        float,
        typer.Option(
            "--generated-weight",
            callback=options.within("--generated-weight", 0, MANY),
            help="What a generated token costs, in prompt tokens.",
        ),
    ] = 10,
    sample: SampleSize = 50,
    store: TrialStore = STORE,
    job: options.SpecFile = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Try settings on judged queries and write the job with the best ranking for the fewest tokens.

    Example: batchrank tune queries.jsonl --qrels judged.qrels -o tuned.toml

    The same command again goes on where it stopped, and asks nothing twice.
    """
    base = load_spec(job, settings)
    axes = DEFAULT_GRID if grid is None else read_grid(grid)
    parse_measures([NDCG])
    judged = read_qrels(qrels)
    source = source_of(base, queries)
    reads = {**files_of(source), "the judgements": qrels, "the job spec": job}
    own = (Holding.SETTINGS,) if is_tuned(output) else ()
    check_result(output, store, {**reads, "the grid": grid}, own)

    async def work(trials: Trials, say: Say) -> Tuning:
        return await tune(trials, base, axes, judged, generated_weight, say)

    with sampled(source, sample, judged) as drawn:
        found = try_on(drawn, store, work, budget)
    with AtomicFile(str(output)) as file:
        file.write(write_toml(found.chosen.setting.values, spec_comment(found)).encode())
    if as_json:
        print_json(tuning_value(found))
    else:
        typer.echo("\n".join([*tuning_lines(found), f"written to {output}"]))
