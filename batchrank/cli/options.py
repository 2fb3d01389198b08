"""The flags that commands share, each named like its key in a job spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, get_args

import typer
from pydantic import BaseModel

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


def setting(
    field: str,
    *names: str,
    panel: str,
    metavar: str | None = None,
    shape: type[BaseModel] = JobSpec,
) -> object:
    """The flag `names` of a field of `shape`: described, bounded and with the default as there."""
    described = shape.model_fields[field]
    default = described.get_default(call_default_factory=True)
    shown = "" if default is None or default is False else f" (default {_text(default)})"
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
SAMPLED = "Queries with candidates, in a file: a sample of them is tried."
SampledFile = Annotated[str, typer.Argument(metavar="QUERIES", help=SAMPLED)]
JobInput = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUERIES]",
        help="Queries with candidates: JSONL, CSV, Parquet, a TREC run or a BEIR folder, plain, "
        ".gz or .zst; - for stdin; by default the job spec's input.",
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
PriceFile = Annotated[
    Path | None, typer.Option("--job", help="Job spec with the price of a GPU hour.")
]
QrelsFile = Annotated[Path, typer.Option("--qrels", help="Judgements, in TREC format.")]
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

Output = Annotated[str | None, setting("output", "--output", "-o", panel=_GENERAL, metavar="FILE")]
Store = Annotated[Path | None, setting("store", "--store", panel=_GENERAL)]
OutputFormatName = Annotated[
    str | None,
    setting(
        "output_format", "--output-format", panel=_GENERAL, metavar="|".join(get_args(OutputFormat))
    ),
]
InputFormatName = Annotated[
    str | None,
    setting("format", "--format", panel=_GENERAL, metavar="|".join(get_args(InputFormat))),
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
Corpus = Annotated[Path | None, setting("corpus", "--corpus", panel=_GENERAL)]
Topics = Annotated[Path | None, setting("topics", "--topics", panel=_GENERAL)]
RunFile = Annotated[Path | None, setting("run_file", "--run-file", panel=_GENERAL)]
Limit = Annotated[int | None, setting("limit", "--limit", panel=_GENERAL)]
ShardName = Annotated[str | None, setting("shard", "--shard", panel=_GENERAL, metavar="I/N")]
TopK = Annotated[int | None, setting("top_k", "--top-k", panel=_GENERAL)]

BaseUrl = Annotated[
    list[str] | None, setting("base_url", "--base-url", panel=_MODEL, metavar="URL")
]
Backend = Annotated[
    str | None,
    setting("backend", "--backend", panel=_MODEL, metavar="auto|openai|ollama|embedded"),
]
Model = Annotated[str | None, setting("model", "--model", panel=_MODEL, metavar="NAME")]
ModelPath = Annotated[Path | None, setting("model_path", "--model-path", panel=_MODEL)]
ApiKeyEnv = Annotated[
    str | None, setting("api_key_env", "--api-key-env", panel=_MODEL, metavar="VARIABLE")
]
Concurrency = Annotated[int | None, setting("concurrency", "--concurrency", panel=_MODEL)]
Engine = Annotated[str | None, setting("engine", "--engine", panel=_MODEL, metavar="local|ray")]
RayAddress = Annotated[
    str | None, setting("ray_address", "--ray-address", panel=_MODEL, metavar="ADDRESS")
]
WorkersPerNode = Annotated[
    int | None, setting("workers_per_node", "--workers-per-node", panel=_MODEL)
]
NumGpus = Annotated[float | None, setting("num_gpus", "--num-gpus", panel=_MODEL, metavar="N")]
Insecure = Annotated[bool | None, setting("insecure", "--insecure/--secure", panel=_MODEL)]
WaitForServer = Annotated[
    str | None, setting("wait_for_server", "--wait-for-server", panel=_MODEL, metavar="DURATION")
]
PriorityName = Annotated[
    str | None, setting("priority", "--priority", panel=_MODEL, metavar="normal|background")
]
MaxWaiting = Annotated[int | None, setting("max_waiting", "--max-waiting", panel=_MODEL)]
QuietHours = Annotated[
    str | None, setting("quiet_hours", "--quiet-hours", panel=_MODEL, metavar="HH:MM-HH:MM")
]
Timeout = Annotated[float | None, setting("timeout", "--timeout", panel=_MODEL, metavar="SECONDS")]
QueryTimeout = Annotated[
    float | None, setting("query_timeout", "--query-timeout", panel=_MODEL, metavar="SECONDS")
]
Thinking = Annotated[str | None, setting("thinking", "--thinking", panel=_MODEL, metavar="off|on")]

Strategy = Annotated[str | None, setting("strategy", "--strategy", panel=_RANKING, metavar="NAME")]
WindowSize = Annotated[int | None, setting("window_size", "--window-size", panel=_RANKING)]
Stride = Annotated[int | None, setting("stride", "--stride", panel=_RANKING)]
Winners = Annotated[int | None, setting("winners", "--winners", panel=_RANKING)]
Passes = Annotated[str | None, setting("passes", "--passes", panel=_RANKING, metavar="LIST")]
MergePasses = Annotated[
    str | None, setting("merge_passes", "--merge-passes", panel=_RANKING, metavar="LIST")
]
Preset = Annotated[
    str | None, setting("preset", "--preset", panel=_RANKING, metavar="fast|balanced|thorough")
]
Tournaments = Annotated[int | None, setting("tournaments", "--tournaments", panel=_RANKING)]
Method = Annotated[
    str | None, setting("method", "--method", panel=_RANKING, metavar="heap|insertion")
]
Yes = Annotated[bool | None, setting("yes", "--yes", panel=_RANKING)]
AnswerKind = Annotated[str | None, setting("answer", "--answer", panel=_RANKING, metavar="NAME")]
Template = Annotated[str | None, setting("template", "--template", panel=_RANKING, metavar="NAME")]
MaxDocTokens = Annotated[int | None, setting("max_doc_tokens", "--max-doc-tokens", panel=_RANKING)]
Depth = Annotated[int | None, setting("depth", "--depth", panel=_RANKING)]
Fit = Annotated[str | None, setting("fit", "--fit", panel=_RANKING, metavar="adapt|refuse")]
ReAsk = Annotated[bool | None, setting("re_ask", "--re-ask/--no-re-ask", panel=_RANKING)]

Alpha = Annotated[float | None, setting("alpha", "--alpha", panel=_SELECTION)]
Normalise = Annotated[
    str | None, setting("normalise", "--normalise", panel=_SELECTION, metavar="rank|min-max")
]
NearDuplicates = Annotated[
    float | None,
    setting("near_duplicates", "--near-duplicates", panel=_SELECTION, metavar="SIMILARITY"),
]
Mmr = Annotated[float | None, setting("mmr", "--mmr", panel=_SELECTION, metavar="LAMBDA")]

Incremental = Annotated[
    bool | None, setting("incremental", "--incremental/--no-incremental", panel=_RANKING)
]
IncrementalMaxChange = Annotated[
    str | None,
    setting(
        "incremental_max_change", "--incremental-max-change", panel=_INCREMENTAL, metavar="SHARE"
    ),
]
IncrementalMaxAge = Annotated[
    str | None,
    setting("incremental_max_age", "--incremental-max-age", panel=_INCREMENTAL, metavar="DURATION"),
]

MaxFallback = Annotated[
    str | None, setting("max_fallback", "--max-fallback", panel=_GATES, metavar="SHARE")
]
MaxFailed = Annotated[
    str | None, setting("max_failed", "--max-failed", panel=_GATES, metavar="SHARE")
]
GateQrels = Annotated[
    Path | None, setting("gate_qrels", "--gate-qrels", panel=_GATES, metavar="QRELS")
]
MinOverlap = Annotated[
    str | None, setting("min_overlap", "--min-overlap", panel=_GATES, metavar="SHARE")
]

Deadline = Annotated[str | None, setting("deadline", "--deadline", panel=_NIGHT, metavar="HH:MM")]
TimeLimit = Annotated[
    str | None, setting("time_limit", "--time-limit", panel=_NIGHT, metavar="DURATION")
]
Degrade = Annotated[bool | None, setting("degrade", "--degrade/--no-degrade", panel=_NIGHT)]
WaitForLock = Annotated[
    bool | None, setting("wait_for_lock", "--wait-for-lock/--no-wait-for-lock", panel=_NIGHT)
]
LogFormat = Annotated[
    str | None, setting("log_format", "--log-format", panel=_NIGHT, metavar="text|json")
]

OF_WATCHING = ("dashboard", "dashboard_address", "metrics_port", "metrics_textfile")
"""Settings by which a run shows itself."""
Dashboard = Annotated[
    bool | None, setting("dashboard", "--dashboard/--no-dashboard", panel=_WATCHING)
]
DashboardAddress = Annotated[
    str | None,
    setting("dashboard_address", "--dashboard-address", panel=_WATCHING, metavar="HOST:PORT"),
]
MetricsPort = Annotated[
    str | None, setting("metrics_port", "--metrics-port", panel=_WATCHING, metavar="PORT")
]
MetricsTextfile = Annotated[
    Path | None,
    setting("metrics_textfile", "--metrics-textfile", panel=_WATCHING, metavar="FILE"),
]
