"""The flags that commands share, each named like its key in a job spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, get_args

import typer

from batchrank.errors import UsageError
from batchrank.spec.fields import MOST
from batchrank.spec.jobspec import JobSpec
from batchrank.values import InputFormat, OutputFormat

Callback = Callable[[object], object]

_GENERAL = "Files"
_MODEL = "Model server"
_RANKING = "Ranking"
_SELECTION = "Selection"
_INCREMENTAL = "With --incremental"
_GATES = "Gates"
_NIGHT = "The night"
_WATCHING = "Watching"


def _option(field: str, *names: str, panel: str, metavar: str | None = None) -> object:
    described = JobSpec.model_fields[field]
    default = described.get_default(call_default_factory=True)
    shown = "" if default is None else f" (default {_text(default)})"
    return typer.Option(
        *names,
        help=f"{described.description}{shown}",
        rich_help_panel=panel,
        metavar=metavar,
        callback=_checked(names[0], described.metadata),
        show_default=False,
    )


def within(flag: str, least: float, most: float) -> Callback:
    """A callback for typer: UsageError where a value is not from `least` to `most`, as NaN is."""

    def checked(value: object) -> object:
        if isinstance(value, int | float) and not least <= value <= most:
            bound = f"at most {most:.15g}" if value > most else f"at least {least:.15g}"
            raise UsageError(f"{flag} must be {bound}, got {value!r:.60}")
        return value

    return checked


def _checked(flag: str, bounds: Sequence[object]) -> Callback | None:
    """A setting's own bounds, where it has two: not every command makes a job spec of its flags."""
    least, most = (
        next((getattr(one, end) for one in bounds if hasattr(one, end)), None)
        for end in ("ge", "le")
    )
    return None if least is None or most is None else within(flag, least, most)


def _text(value: object) -> str:
    return f"{value:.0%}" if isinstance(value, float) and value <= 1 else f"{value}"


InputFile = Annotated[
    str, typer.Argument(metavar="QUERIES", help="Queries with candidates; - for stdin.")
]
JobInput = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUERIES]",
        help="JSONL file, plain, .gz or .zst; - for stdin; by default the job spec's input.",
    ),
]
Day = Annotated[
    datetime | None,
    typer.Option(
        "--date",
        formats=["%Y-%m-%d"],
        metavar="YYYY-MM-DD",
        help="What {date} stands for in names of files (default: the day this night began).",
        rich_help_panel=_GENERAL,
        show_default=False,
    ),
]
SpecFile = Annotated[
    Path | None,
    typer.Option("--job", help="Job spec in TOML; flags win over it.", rich_help_panel=_GENERAL),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
RunNumber = Annotated[
    int | None,
    typer.Option(
        "--run",
        metavar="ID",
        callback=within("--run", 1, MOST),
        help="Which run (default the latest).",
        show_default=False,
    ),
]
StoreFile = Annotated[Path, typer.Option("--store", help="SQLite store of the job.")]

Output = Annotated[str | None, _option("output", "--output", "-o", panel=_GENERAL, metavar="FILE")]
Store = Annotated[Path | None, _option("store", "--store", panel=_GENERAL)]
OutputFormatName = Annotated[
    str | None,
    _option(
        "output_format", "--output-format", panel=_GENERAL, metavar="|".join(get_args(OutputFormat))
    ),
]
InputFormatName = Annotated[
    str | None,
    _option("format", "--format", panel=_GENERAL, metavar="|".join(get_args(InputFormat))),
]
From = Annotated[
    InputFormat | None,
    typer.Option(
        "--from",
        help="Format of the input (default: as its first bytes say).",
        show_default=False,
    ),
]
To = Annotated[
    OutputFormat | None,
    typer.Option(
        "--to",
        help="Format of the output (default: as its name ends, or jsonl).",
        show_default=False,
    ),
]
Corpus = Annotated[Path | None, _option("corpus", "--corpus", panel=_GENERAL)]
Topics = Annotated[Path | None, _option("topics", "--topics", panel=_GENERAL)]
RunFile = Annotated[Path | None, _option("run_file", "--run-file", panel=_GENERAL)]
Limit = Annotated[int | None, _option("limit", "--limit", panel=_GENERAL)]
ShardName = Annotated[str | None, _option("shard", "--shard", panel=_GENERAL, metavar="I/N")]
TopK = Annotated[int | None, _option("top_k", "--top-k", panel=_GENERAL)]

BaseUrl = Annotated[
    list[str] | None, _option("base_url", "--base-url", panel=_MODEL, metavar="URL")
]
Backend = Annotated[
    str | None,
    _option("backend", "--backend", panel=_MODEL, metavar="auto|openai|ollama|embedded"),
]
Model = Annotated[str | None, _option("model", "--model", panel=_MODEL, metavar="NAME")]
ModelPath = Annotated[Path | None, _option("model_path", "--model-path", panel=_MODEL)]
ApiKeyEnv = Annotated[
    str | None, _option("api_key_env", "--api-key-env", panel=_MODEL, metavar="VARIABLE")
]
Concurrency = Annotated[int | None, _option("concurrency", "--concurrency", panel=_MODEL)]
Insecure = Annotated[bool | None, _option("insecure", "--insecure/--secure", panel=_MODEL)]
WaitForServer = Annotated[
    str | None, _option("wait_for_server", "--wait-for-server", panel=_MODEL, metavar="DURATION")
]
PriorityName = Annotated[
    str | None, _option("priority", "--priority", panel=_MODEL, metavar="normal|background")
]
MaxWaiting = Annotated[int | None, _option("max_waiting", "--max-waiting", panel=_MODEL)]
QuietHours = Annotated[
    str | None, _option("quiet_hours", "--quiet-hours", panel=_MODEL, metavar="HH:MM-HH:MM")
]
Timeout = Annotated[float | None, _option("timeout", "--timeout", panel=_MODEL, metavar="SECONDS")]
QueryTimeout = Annotated[
    float | None, _option("query_timeout", "--query-timeout", panel=_MODEL, metavar="SECONDS")
]
Thinking = Annotated[str | None, _option("thinking", "--thinking", panel=_MODEL, metavar="off|on")]

Strategy = Annotated[str | None, _option("strategy", "--strategy", panel=_RANKING, metavar="NAME")]
WindowSize = Annotated[int | None, _option("window_size", "--window-size", panel=_RANKING)]
Stride = Annotated[int | None, _option("stride", "--stride", panel=_RANKING)]
Winners = Annotated[int | None, _option("winners", "--winners", panel=_RANKING)]
Passes = Annotated[str | None, _option("passes", "--passes", panel=_RANKING, metavar="LIST")]
MergePasses = Annotated[
    str | None, _option("merge_passes", "--merge-passes", panel=_RANKING, metavar="LIST")
]
Preset = Annotated[
    str | None, _option("preset", "--preset", panel=_RANKING, metavar="fast|balanced|thorough")
]
Tournaments = Annotated[int | None, _option("tournaments", "--tournaments", panel=_RANKING)]
Method = Annotated[
    str | None, _option("method", "--method", panel=_RANKING, metavar="heap|insertion")
]
Yes = Annotated[bool | None, _option("yes", "--yes", panel=_RANKING)]
AnswerKind = Annotated[str | None, _option("answer", "--answer", panel=_RANKING, metavar="NAME")]
Template = Annotated[str | None, _option("template", "--template", panel=_RANKING, metavar="NAME")]
MaxDocTokens = Annotated[int | None, _option("max_doc_tokens", "--max-doc-tokens", panel=_RANKING)]
Depth = Annotated[int | None, _option("depth", "--depth", panel=_RANKING)]
Fit = Annotated[str | None, _option("fit", "--fit", panel=_RANKING, metavar="adapt|refuse")]
ReAsk = Annotated[bool | None, _option("re_ask", "--re-ask/--no-re-ask", panel=_RANKING)]

Alpha = Annotated[float | None, _option("alpha", "--alpha", panel=_SELECTION)]
Normalise = Annotated[
    str | None, _option("normalise", "--normalise", panel=_SELECTION, metavar="rank|min-max")
]
NearDuplicates = Annotated[
    float | None,
    _option("near_duplicates", "--near-duplicates", panel=_SELECTION, metavar="SIMILARITY"),
]
Mmr = Annotated[float | None, _option("mmr", "--mmr", panel=_SELECTION, metavar="LAMBDA")]

Incremental = Annotated[
    bool | None, _option("incremental", "--incremental/--no-incremental", panel=_RANKING)
]
IncrementalMaxChange = Annotated[
    str | None,
    _option(
        "incremental_max_change", "--incremental-max-change", panel=_INCREMENTAL, metavar="SHARE"
    ),
]
IncrementalMaxAge = Annotated[
    str | None,
    _option("incremental_max_age", "--incremental-max-age", panel=_INCREMENTAL, metavar="DURATION"),
]

MaxFallback = Annotated[
    str | None, _option("max_fallback", "--max-fallback", panel=_GATES, metavar="SHARE")
]
MaxFailed = Annotated[
    str | None, _option("max_failed", "--max-failed", panel=_GATES, metavar="SHARE")
]
GateQrels = Annotated[
    Path | None, _option("gate_qrels", "--gate-qrels", panel=_GATES, metavar="QRELS")
]
MinOverlap = Annotated[
    str | None, _option("min_overlap", "--min-overlap", panel=_GATES, metavar="SHARE")
]

Deadline = Annotated[str | None, _option("deadline", "--deadline", panel=_NIGHT, metavar="HH:MM")]
TimeLimit = Annotated[
    str | None, _option("time_limit", "--time-limit", panel=_NIGHT, metavar="DURATION")
]
Degrade = Annotated[bool | None, _option("degrade", "--degrade/--no-degrade", panel=_NIGHT)]
WaitForLock = Annotated[
    bool | None, _option("wait_for_lock", "--wait-for-lock/--no-wait-for-lock", panel=_NIGHT)
]
LogFormat = Annotated[
    str | None, _option("log_format", "--log-format", panel=_NIGHT, metavar="text|json")
]

Dashboard = Annotated[
    bool | None, _option("dashboard", "--dashboard/--no-dashboard", panel=_WATCHING)
]
DashboardAddress = Annotated[
    str | None,
    _option("dashboard_address", "--dashboard-address", panel=_WATCHING, metavar="HOST:PORT"),
]
MetricsPort = Annotated[
    str | None, _option("metrics_port", "--metrics-port", panel=_WATCHING, metavar="PORT")
]
MetricsTextfile = Annotated[
    Path | None,
    _option("metrics_textfile", "--metrics-textfile", panel=_WATCHING, metavar="FILE"),
]
