"""`batchrank eval` and `batchrank compare`: is it better, by how much, how surely, at what cost."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.commands.run import run
from batchrank.cli.display.measured import (
    comparison_lines,
    evaluation_lines,
    likeness_lines,
    spending_lines,
)
from batchrank.cli.display.noise import noise_lines, noise_value
from batchrank.cli.display.values import comparison_value, evaluation_value, run_value
from batchrank.cli.loop import run_loop
from batchrank.cli.settings import settings_of
from batchrank.cli.streams import print_json
from batchrank.cli.trials import NO_MATTER, SampleSize, Say, try_on
from batchrank.errors import UsageError
from batchrank.formats.trec import read_qrels
from batchrank.formats.wording import quoted
from batchrank.measuring.comparison import compare_runs, evaluate_run, likenesses
from batchrank.measuring.cost import Worth, worth
from batchrank.measuring.noise import Noise, Yardsticks, ask_twice, noise
from batchrank.measuring.runs import MeasuredRun, read_source
from batchrank.measuring.sampling import sampled
from batchrank.measuring.trials import Trials
from batchrank.metrics.evaluation import DEFAULT_MEASURES, NDCG, parse_measures
from batchrank.metrics.significance import Test
from batchrank.running.inputs import source_of
from batchrank.spec.fields import MANY
from batchrank.spec.jobspec import Cost, JobSpec
from batchrank.spec.loading import load_spec

_MOST_RUNS = 26

Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        metavar="NAME",
        help="Measure as ir_measures names it, repeatable (default "
        f"{', '.join(DEFAULT_MEASURES)}).",
        show_default=False,
    ),
]
TestName = Annotated[
    str, typer.Option("--test", metavar="randomisation|t", help="Paired significance test.")
]


def evaluate_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN_OR_STORE",
            help="TREC run, batchrank's output, or a store (STORE#ID for one of its runs).",
        ),
    ],
    qrels: options.QrelsFile,
    number: options.RunNumber = None,
    measure: Measures = None,
    first_stage: Annotated[
        Path | None,
        typer.Option("--first-stage", metavar="RUN", help="First stage, as a run or the input."),
    ] = None,
    test: TestName = "randomisation",
    job: options.PriceFile = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Show every query.")] = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Measure a run beside its first stage: the change, how sure it is, what it cost.

    Examples:

      batchrank eval batchrank.sqlite --qrels judged.qrels
      batchrank eval tonight.trec --qrels judged.qrels --first-stage queries.jsonl
    """
    chosen = _test(test)
    cost = None if job is None else cost_of(job)
    yardstick = () if cost is None else (NDCG,)
    measures = parse_measures([*(measure or DEFAULT_MEASURES), *yardstick])
    judged = read_qrels(qrels)
    run = _read(source, number, judged)
    if cost is not None and run.spending is None:
        raise UsageError(f"--job weighs the cost of a run in a store; {quoted(source)} is none")
    first = None if first_stage is None else _read(first_stage, None, judged)
    found = evaluate_run(measures, judged, run, first, chosen)
    rows = run.rows.total()
    price: Worth | None = None
    if cost is not None and run.spending is not None:
        gains = {made.measure: made.difference for made in found.changes}
        price = worth(cost, run.spending, rows, gains.get(NDCG))
    if as_json:
        print_json(evaluation_value(found, price))
        return
    lines = evaluation_lines(found, per_query=per_query)
    if run.spending is not None and rows:
        lines += ["", *spending_lines(run.spending, rows, price)]
    typer.echo("\n".join(lines))


@settings_of(run, without={*NO_MATTER, "wait_for_lock"})
def compare_command(
    settings: Mapping[str, object],
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN RUN...", help="Two or more, each as for `eval`: files, STORE or STORE#ID."
        ),
    ],
    qrels: Annotated[
        Path | None,
        typer.Option("--qrels", help="Judgements; without them: how alike the rankings are."),
    ] = None,
    measure: Measures = None,
    test: TestName = "randomisation",
    cutoff: Annotated[
        int,
        typer.Option(
            "--cutoff",
            metavar="K",
            callback=options.within("--cutoff", 1, MANY),
            help="Of overlap@K, without --qrels.",
        ),
    ] = 10,
    noise: Annotated[
        str | None,
        typer.Option(
            "--noise",
            metavar="QUERIES",
            help="Ask a sample of these twice: how much does the model differ from itself?",
        ),
    ] = None,
    sample: SampleSize = 50,
    job: options.SpecFile = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Measure runs beside one another, or say how alike they are where nothing is judged.

    Examples:

      batchrank compare batchrank.sqlite#3 batchrank.sqlite#4 --qrels judged.qrels
      batchrank compare before.trec after.trec
    """
    chosen = _test(test)
    base = load_spec(job, settings)
    if not 2 <= len(sources) <= _MOST_RUNS:
        raise UsageError(f"compare takes 2 to {_MOST_RUNS} runs, not {len(sources)}")
    if qrels is None:
        if measure:
            raise UsageError("--measure needs judgements: give --qrels")
        runs = [_read(source, None, None) for source in sources]
        alike = likenesses(runs, cutoff)
        own = noise and _ask_twice_of(noise, sample, base, Yardsticks(cutoff))
        if as_json:
            named = [run_value(run) for run in runs]
            value = {"runs": named, "cutoff": cutoff, "likeness": alike}
            print_json(value | ({"noise": noise_value(own)} if own else {}))
        else:
            lines = likeness_lines(runs, alike, cutoff)
            typer.echo("\n".join(lines + (noise_lines(own, None, cutoff) if own else [])))
        return
    measures = parse_measures(measure or DEFAULT_MEASURES)
    judged = read_qrels(qrels)
    runs = [_read(source, None, judged) for source in sources]
    found = compare_runs(measures, judged, runs, chosen)
    own = noise and _ask_twice_of(noise, sample, base, Yardsticks(cutoff, measures, judged, chosen))
    if as_json:
        print_json(comparison_value(found) | ({"noise": noise_value(own)} if own else {}))
    else:
        lines = comparison_lines(found)
        typer.echo("\n".join(lines + (noise_lines(own, found, cutoff) if own else [])))


def _ask_twice_of(source: str, count: int, base: JobSpec, by: Yardsticks) -> Noise:
    """Ask `count` queries of `source` twice, through a store that is gone afterwards."""
    calls = 0

    async def work(trials: Trials, _say: Say) -> list[MeasuredRun]:
        nonlocal calls
        runs = await ask_twice(trials, base)
        calls = trials.calls
        return runs

    with sampled(source_of(base, source), count, by.qrels) as sample:
        runs = try_on(sample, sample.folder / "noise.sqlite", work)
    return noise(runs, calls, by)


def _test(name: str) -> Test:
    if name == "randomisation":
        return "randomisation"
    if name == "t":
        return "t"
    raise UsageError(f"--test {name}: use randomisation or t")


def _read(source: Path, number: int | None, wanted: Container[str] | None) -> MeasuredRun:
    return run_loop(read_source(source, number, wanted))


def cost_of(job: Path) -> Cost:
    """What a job spec says that the machines cost; UsageError where it says nothing."""
    cost = load_spec(job, {}).cost
    if cost is None:
        raise UsageError(f"job spec {job} has no [cost] section: add gpu_hour and gpus")
    return cost
