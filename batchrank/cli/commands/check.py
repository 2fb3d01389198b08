"""`batchrank check` and `batchrank doctor`: is the input fit, is the model server fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import typer

from batchrank.cli import options
from batchrank.cli.commands.run import run
from batchrank.cli.display.summary import night_lines
from batchrank.cli.loop import run_loop
from batchrank.cli.settings import settings_of
from batchrank.cli.streams import print_json
from batchrank.cli.talk import Talk
from batchrank.errors import NoServerError
from batchrank.formats.check import check_lines
from batchrank.formats.sources.source import read_queries
from batchrank.formats.wording import counted, duration
from batchrank.planning.doctor import Findings, Speed, examine
from batchrank.publishing.making import obstacle
from batchrank.running.inputs import source_of
from batchrank.selection.unknownkeys import UnknownKeys
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_spec
from batchrank.values import Request

_NO_MATTER = frozenset(
    (
        *("output", "output_format", "wait_for_lock", "log_format"),
        *options.OF_WATCHING,
        *("max_failed", "gate_qrels", "min_overlap"),
    )
)
"""Settings of a run that change neither what a server must be able to do nor what a job takes."""


def check(
    queries: options.InputFile,
    limit: options.Limit = None,
    job: options.SpecFile = None,
    format_: options.InputFormatName = None,
    corpus: options.Corpus = None,
    topics: options.Topics = None,
    run_file: options.RunFile = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Say what is in QUERIES and which lines can't be used, without a model.

    With --job also what the job's filter, and its mmr, come to.

    Examples:

      batchrank check queries.jsonl
      zcat queries.jsonl.gz | batchrank check - --limit 1000
      batchrank check queries.jsonl --job jobs/nightly.toml

    Exit code 2 where a line can't be used, 0 otherwise.
    """
    belonging = {"corpus": corpus, "topics": topics, "run_file": run_file}
    spec = load_spec(job, {"format": format_, "limit": limit, **belonging})
    selection, unknown_keys = spec.selection, UnknownKeys(spec.filter.keys if spec.filter else ())

    def further(request: Request) -> Sequence[str]:
        unknown_keys.look(request.candidates)
        return selection.warnings(request.candidates, spec.deepest)

    notes: list[str] = []
    blocks = read_queries(source_of(spec, queries), spec.limit, notes.append)
    report = check_lines(blocks, further)
    if as_json:
        print_json({**report.as_dict(), "notes": notes, "filter": unknown_keys.warnings()})
    else:
        warnings = (*notes, *unknown_keys.warnings())
        for line in (*report.lines(), *(f"warning: {said}" for said in warnings)):
            typer.echo(line)
    raise typer.Exit(2 if report.failures else 0)


@settings_of(run, without=_NO_MATTER)
def doctor(
    settings: Mapping[str, object],
    queries: options.JobInput = None,
    job: options.SpecFile = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Prove that the model server can do a job, measure it, and estimate the hours for QUERIES.

    Examples:

      batchrank doctor
      batchrank doctor queries.jsonl --job jobs/nightly.toml

    Exit code 4 where a job would not start: no usable server, or no answer that could be read;
    75 in quiet hours.
    """
    spec = load_spec(job, {**settings, "input": queries})
    with Talk() as talk:
        # First, as it is refused in less time than it takes to measure a server.
        unready = run_loop(obstacle(spec.publish)) if spec.publish is not None else None
        findings = run_loop(examine(spec, spec.input, talk.say))
    if as_json:
        print_json({**_as_dict(findings), "publish": unready})
    else:
        for line in _lines(spec, findings, unready):
            typer.echo(line)
    raise typer.Exit(NoServerError.exit_code if findings.refusal else 0)


def _as_dict(findings: Findings) -> dict[str, object]:
    speed = findings.speed
    return {
        "url": findings.url,
        **findings.profile.as_dict(),
        "calls": speed.calls,
        "in_flight": speed.in_flight,
        "prompt_tokens_per_second": round(speed.prompt_tokens, 1),
        "completion_tokens_per_second": round(speed.completion_tokens, 1),
        "pairs_per_second": round(speed.pairs / speed.seconds, 1),
        "forecast": findings.forecast.as_dict() if findings.forecast else None,
        "hours": findings.outlook.hours if findings.outlook else None,
        "night": asdict(findings.end) if findings.end else None,
        "outlook": asdict(findings.outlook) if findings.outlook else None,
    }


def _lines(spec: JobSpec, findings: Findings, unready: str | None) -> list[str]:
    profile, speed = findings.profile, findings.speed
    lines = [
        f"server      {findings.url} ({profile.kind})",
        f"model       {profile.model}",
        f"identity    {profile.identity}",
        f"answers     {', '.join(findings.readings)}"
        + ("" if profile.form == "text" else f", as {profile.form}, constrained"),
        "context     "
        + (f"{profile.context:,} tokens a slot" if profile.context else "not disclosed"),
        f"slots       {profile.slots or 'not disclosed'}",
        f"windows     at most {profile.window_size} documents of {profile.max_doc_tokens} tokens",
        f"tokens      {profile.token_ratio} of this model's for one estimated",
        f"speed       {_rate(speed)}, {speed.in_flight} calls in flight",
    ]
    if spec.publish is not None and unready is None:
        lines.append("publish     the target is there and takes a publication")
    warnings = [*profile.warnings, *([f"publish: {unready}"] if unready else [])]
    lines += [f"warning     {warning}" for warning in warnings]
    if findings.forecast and findings.outlook and findings.end:
        found = findings.forecast
        lines.append(
            f"job         {found.queries:,} queries, "
            + (f"{found.known:,} of them ranked already, " if found.known else "")
            + f"{found.calls:,} calls, "
            + (f"{found.pairs:,} pairs of query and document, " if found.pairs else "")
            + f"{found.prompt_tokens:,} prompt tokens: about "
            f"{duration(findings.outlook.hours * 3600)}"
        )
        night = night_lines(spec, findings.end, findings.outlook, findings.now)
        lines += [f"night       {line}" for line in night]
    lines.append(_verdict(findings, len(warnings)))
    return lines


def _rate(speed: Speed) -> str:
    """What was measured; a server that counts no tokens is not said to be without speed."""
    parts = []
    if speed.pairs:
        parts.append(f"{speed.pairs / speed.seconds:,.1f} pairs of query and document a second")
    if speed.usage.prompt_tokens or not speed.pairs:
        generated = "" if speed.pairs else f" + {speed.completion_tokens:,.1f} generated"
        parts.append(f"{speed.prompt_tokens:,.0f} prompt{generated} tokens/s")
    return ", ".join(parts)


def _verdict(findings: Findings, warnings: int) -> str:
    if findings.refusal:
        return f"not fit: {findings.refusal}"
    if warnings:
        return f"fit, but see the {counted(warnings, 'warning')} above"
    return "all is well"
