"""Runs the judge server until it is told to stop; docs/judge.md describes it."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from typing import get_args

import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.judge import JudgeConfig, JudgeServer, Knowledge, read_knowledge
from scripts.judge.config import Bias, Kind, NoiseBy


def main() -> None:
    """Serve, with the address on the first line of stdout, until SIGINT or SIGTERM."""
    arguments = _parser().parse_args()
    names = JudgeConfig.__dataclass_fields__
    given = {name: value for name, value in vars(arguments).items() if name in names}
    try:
        config = JudgeConfig(**given)
        knowledge = _knowledge(arguments)
    except (ValueError, OSError) as error:
        sys.exit(f"judge_server: {error}")
    uvloop.run(_serve(JudgeServer(config, knowledge, port=arguments.port)))


async def _serve(server: JudgeServer) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with server:
        print(f"listening on {server.url}", flush=True)
        await stopped.wait()


def _knowledge(arguments: argparse.Namespace) -> Knowledge | None:
    sources = (arguments.gains, arguments.inputs, arguments.corpus, arguments.queries)
    if not any(sources):
        return None
    return read_knowledge(
        gains=arguments.gains,
        inputs=arguments.inputs or (),
        corpus=arguments.corpus,
        queries=arguments.queries,
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _parser() -> argparse.ArgumentParser:
    # A flag that is not given leaves the default to JudgeConfig.
    parser = argparse.ArgumentParser(
        description=__doc__, argument_default=argparse.SUPPRESS, allow_abbrev=False
    )
    add = parser.add_argument
    add("--port", type=int, default=0, help="0: any free port")
    add("--gains", type=Path, default=None, help="qrels, `qid docid score` or a TREC run")
    add("--input", dest="inputs", type=Path, action="append", default=None, help="batch input")
    add("--corpus", type=Path, default=None, help="JSONL of _id, title, text")
    add("--queries", type=Path, default=None, help="JSONL of _id, text")
    add("--kind", choices=get_args(Kind))
    add("--model")
    add("--context", type=int, help="tokens a slot")
    add(
        "--constraints",
        type=lambda text: frozenset(_names(text)),
        help="comma list of the fields obeyed, empty for none",
    )
    add("--api-key")
    add("--seed", type=int)
    add("--docid-text", action="store_true", help="a document's first line is its docid")
    add("--wanted-pattern")
    add("--query-pattern")
    add("--noise", type=float)
    add("--noise-by", choices=get_args(NoiseBy))
    add("--bias", choices=get_args(Bias))
    add("--bias-strength", type=float)
    add("--malformed-rate", type=float)
    add("--malformed", type=_names, help="comma list of kinds")
    add("--error-rate", type=float)
    add("--errors", type=_names, help="comma list of kinds")
    add("--alternatives", type=int)
    add("--sound-trials", action="store_true")
    add("--fail-once", action="store_true")
    add("--retry-after", type=float)
    add("--hang-seconds", type=float)
    add("--slots", type=int)
    add("--queue", type=int)
    add("--call-seconds", type=float)
    add("--sigma", type=float)
    add("--prompt-rate", type=float)
    add("--generated-rate", type=float)
    add("--prefix-cache", type=int, help="tokens")
    add("--log", type=Path, help="JSONL of model calls, appended to")
    return parser


if __name__ == "__main__":
    main()
