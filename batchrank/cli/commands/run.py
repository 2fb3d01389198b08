"""`batchrank run`: the main job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Annotated, Any

import typer

from batchrank.cli import options
from batchrank.cli.commands.dryrun import dry_run
from batchrank.cli.display.summary import summary_lines
from batchrank.cli.early import NOTHING_LOST
from batchrank.cli.loop import run_loop
from batchrank.cli.paths import check_paths
from batchrank.cli.refusals import refusals_told
from batchrank.cli.signals import stop_on_signals
from batchrank.cli.streams import print_failure, print_json
from batchrank.cli.talk import Talk
from batchrank.cli.tonight import input_of, tonight
from batchrank.cli.views import Tick, views_of
from batchrank.errors import BatchrankError, DiskError, StoppedError, StoreInUseError, UsageError
from batchrank.formats.sources.source import Source
from batchrank.logs import json_logs
from batchrank.nightly.after import AfterTheRun, Night, steps_of
from batchrank.progress.snapshot import Snapshot
from batchrank.publishing.making import obstacle
from batchrank.results.filenames import default_output, name_of_part
from batchrank.running.inputs import source_of
from batchrank.running.report import Report
from batchrank.running.runner import Runner
from batchrank.running.summaryfile import write_summary
from batchrank.spec.jobspec import JobSpec

_log = logging.getLogger(__name__)


def run(
    queries: options.JobInput = None,
    output: options.Output = None,
    store: options.Store = None,
    job: options.SpecFile = None,
    output_format: options.OutputFormatName = None,
    format_: options.InputFormatName = None,
    corpus: options.Corpus = None,
    topics: options.Topics = None,
    run_file: options.RunFile = None,
    limit: options.Limit = None,
    shard: options.ShardName = None,
    top_k: options.TopK = None,
    base_url: options.BaseUrl = None,
    backend: options.Backend = None,
    model: options.Model = None,
    model_path: options.ModelPath = None,
    api_key_env: options.ApiKeyEnv = None,
    concurrency: options.Concurrency = None,
    engine: options.Engine = None,
    ray_address: options.RayAddress = None,
    workers_per_node: options.WorkersPerNode = None,
    num_gpus: options.NumGpus = None,
    timeout: options.Timeout = None,
    query_timeout: options.QueryTimeout = None,
    insecure: options.Insecure = None,
    wait_for_server: options.WaitForServer = None,
    priority: options.PriorityName = None,
    max_waiting: options.MaxWaiting = None,
    quiet_hours: options.QuietHours = None,
    thinking: options.Thinking = None,
    preset: options.Preset = None,
    strategy: options.Strategy = None,
    window_size: options.WindowSize = None,
    stride: options.Stride = None,
    winners: options.Winners = None,
    passes: options.Passes = None,
    merge_passes: options.MergePasses = None,
    tournaments: options.Tournaments = None,
    method: options.Method = None,
    yes: options.Yes = None,
    answer: options.AnswerKind = None,
    template: options.Template = None,
    max_doc_tokens: options.MaxDocTokens = None,
    depth: options.Depth = None,
    fit: options.Fit = None,
    re_ask: options.ReAsk = None,
    alpha: options.Alpha = None,
    normalise: options.Normalise = None,
    near_duplicates: options.NearDuplicates = None,
    mmr: options.Mmr = None,
    incremental: options.Incremental = None,
    incremental_max_change: options.IncrementalMaxChange = None,
    incremental_max_age: options.IncrementalMaxAge = None,
    max_fallback: options.MaxFallback = None,
    max_failed: options.MaxFailed = None,
    gate_qrels: options.GateQrels = None,
    min_overlap: options.MinOverlap = None,
    deadline: options.Deadline = None,
    time_limit: options.TimeLimit = None,
    degrade: options.Degrade = None,
    wait_for_lock: options.WaitForLock = None,
    log_format: options.LogFormat = None,
    dashboard: options.Dashboard = None,
    dashboard_address: options.DashboardAddress = None,
    metrics_port: options.MetricsPort = None,
    metrics_textfile: options.MetricsTextfile = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Say what the job takes and call no model.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget this job's rankings and ask everything anew.")
    ] = False,
    retry_fallbacks: Annotated[
        bool,
        typer.Option("--retry-fallbacks", help="Ask windows again whose answers were unusable."),
    ] = False,
    date: options.Day = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Rerank QUERIES and write the rankings; the same command again goes on where it stopped.

    Examples:

      batchrank run queries.jsonl
      batchrank run queries.jsonl --base-url http://gpu1:8000 -o tonight.jsonl
      batchrank run queries.jsonl --job jobs/nightly.toml --limit 100 --dry-run
      batchrank run --job nightly.toml --date 2026-11-30

    Exit codes: 0 complete, 1 failed (nothing lost), 2 usage or input, 3 beyond a quality gate,
    4 no usable model server (any more; resumable), 75 stopped early and resumable.
    """
    flags = {name: value for name, value in locals().items() if name in JobSpec.model_fields}
    spec = tonight(job, {**flags, "input": queries, "format": format_}, date)
    if dry:
        dry_run(spec, input_of(spec), fresh=fresh, retry_fallbacks=retry_fallbacks, as_json=as_json)
        return
    with refusals_told(spec):
        path = input_of(spec)
        source = source_of(spec, path)
        whole = spec.output or default_output(path, spec.output_format or "jsonl")
        target = name_of_part(whole, source.shard)
        if as_json and target == "-":
            raise UsageError("--json and an output on stdout can't be had together; give -o FILE")
        check_paths(spec, path, target, job)
        work = _run(spec, source, target, fresh=fresh, retry_fallbacks=retry_fallbacks)
        night = run_loop(work) if spec.log_format == "text" else _logged(spec, work)
    if as_json:
        print_json({**night.report.summary(), "exit_code": night.exit_code, "steps": night.told})
    if night.fault is not None:
        raise night.fault
    raise typer.Exit(night.exit_code)


def _logged(spec: JobSpec, work: Coroutine[Any, Any, Night]) -> Night:
    """Run with structured logs; what ends the run is the last of their lines."""
    with json_logs():
        try:
            with refusals_told(spec):
                return run_loop(work)
        except BatchrankError as error:
            level = logging.WARNING if isinstance(error, StoppedError) else logging.ERROR
            _log.log(level, "%s", error, extra={"reason": type(error).__name__})
            print_failure(str(error), error.exit_code)
            raise typer.Exit(error.exit_code) from error


async def _run(
    spec: JobSpec, source: Source, output: str, *, fresh: bool, retry_fallbacks: bool
) -> Night:
    with Talk(logged=spec.log_format == "json") as talk:
        # What would fail after hours of ranking is said before; what may pass costs no night.
        if spec.publish is not None and "publish" in steps_of(spec):
            why = await obstacle(spec.publish)
            if why is not None:
                talk.say(f"warning: publish: {why}; ranking begins, and then it is tried again")
        ticks: list[Tick] = [talk.tick]

        def tick(snapshot: Snapshot) -> None:
            for one in ticks:
                one(snapshot)

        runner = Runner(
            spec,
            source,
            output,
            fresh=fresh,
            retry_fallbacks=retry_fallbacks,
            say=talk.say,
            tick=tick,
        )
        stop_on_signals(runner, talk)
        views = views_of(spec, runner.inspect, talk.say)
        # The views outlast the night, whose last snapshot tells how it ended.
        async with views as shown, AsyncExitStack() as held:
            ticks += shown
            report = await _reported(runner, output, talk, held, goes_on=bool(steps_of(spec)))
            for line in summary_lines(report):
                talk.say(line)
            steps = AfterTheRun(spec, report, runner.progress, talk.say)
            stop_on_signals(steps, talk)
            night = await steps.run()
            if night.told:
                await _summarised(output, night, talk)
            runner.night_ended(night.exit_code, night.reasons)
    for name, told in night.told.items():
        talk.say(f"{name}: {told}")
    return night


async def _reported(
    runner: Runner, output: str, talk: Talk, held: AsyncExitStack, *, goes_on: bool
) -> Report:
    """Run, and leave a summary beside the output, also of a run that failed."""
    try:
        report = await runner.run_within(held, goes_on=goes_on)
    except (UsageError, StoreInUseError):
        raise  # nothing has run
    except BatchrankError as error:
        with suppress(DiskError):  # what failed first is told
            await asyncio.to_thread(write_summary, output, error)
        if type(error) is StoppedError:  # by a signal, before there was anything to report
            raise StoppedError(f"{error}; {NOTHING_LOST}") from error
        raise
    await _summarised(output, Night(report), talk)
    return report


async def _summarised(output: str, night: Night, talk: Talk) -> None:
    try:
        await asyncio.to_thread(write_summary, output, night.report, night.told, night.exit_code)
    except DiskError as error:
        talk.say(f"warning: {error.fault}")
