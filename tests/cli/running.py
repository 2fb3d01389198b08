"""Runs the command line, in this process or another, against servers in a thread of their own."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar
from unittest.mock import patch

import orjson
import uvloop

from batchrank.cli import main
from scripts.judge import JudgeConfig, JudgeServer, Knowledge
from tests.cli.advice import check_advice
from tests.conftest import ROOT
from tests.waiting import PATIENCE

T = TypeVar("T")
Row = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """How a command ended and what it wrote."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON value."""
        return orjson.loads(self.out)


def batchrank(
    *arguments: object, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> Result:
    """Run the command line in this process: fast, and what it patches can be patched."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    source = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    code = 0
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with (
        patch.dict(os.environ, {"COLUMNS": "200", **(env or {})}),
        patch.object(sys, "argv", ["batchrank", *map(str, arguments)]),
        patch.object(sys, "stdin", source),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        out.flush()
        err.flush()
    written = [stream.buffer.getvalue() for stream in (out, err)]
    result = Result(code, written[0], written[1].decode())
    check_advice(arguments, result.err)
    return result


def started(*arguments: object, cwd: Path) -> subprocess.Popen[str]:
    """The command line as a process of its own: for signals and kills."""
    return subprocess.Popen(
        [sys.executable, "-m", "batchrank", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def serving(server: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """`server`, running in a thread, so that the command line may hold this one."""
    loop = uvloop.new_event_loop()  # asyncio's leaves a connection open that came at the very end
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        opened = asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(PATIENCE)
        try:
            yield opened
        finally:
            closing = server.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(_as_coroutine(closing), loop).result(PATIENCE)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _as_coroutine(work: Any) -> None:
    await work


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port


def requests(queries: int, candidates: int) -> list[Row]:
    """Input lines: query `q1` has candidates `q1-d1`, `q1-d2`, … with falling scores."""
    return [
        {
            "query": {"qid": f"q{query}", "text": f"who tends garden number {query}"},
            "candidates": [
                {
                    "docid": f"q{query}-d{place}",
                    "score": float(candidates - place),
                    "doc": {
                        "text": f"Leaf {query}-{place} of a diary: the gardener of plot {query} "
                        f"writes of rain, of snails and of row {place}."
                    },
                }
                for place in range(1, candidates + 1)
            ],
        }
        for query in range(1, queries + 1)
    ]


def written(path: Path, rows: Sequence[Row | bytes]) -> Path:
    """`path`, holding the rows as JSONL; bytes are written as they are."""
    path.write_bytes(
        b"".join((row if isinstance(row, bytes) else orjson.dumps(row)) + b"\n" for row in rows)
    )
    return path


def gain(qid: str, docid: str) -> float:
    """A fixed gain from 0 to 1 that has nothing to do with the first stage."""
    return int.from_bytes(sha256(f"{qid} {docid}".encode()).digest()[:4], "big") / 2**32


def knowledge(rows: Sequence[Row]) -> Knowledge:
    """What a judge knows of rows as `requests` makes them."""
    documents: dict[str, tuple[str, str]] = {}
    queries: dict[str, str] = {}
    gains: dict[str, dict[str, float]] = {}
    for row in rows:
        qid = row["query"]["qid"]
        queries[qid] = row["query"]["text"]
        docids = [candidate["docid"] for candidate in row["candidates"]]
        gains[qid] = {docid: gain(qid, docid) for docid in docids}
        for candidate in row["candidates"]:
            documents[candidate["docid"]] = ("", candidate["doc"]["text"])
    return Knowledge(documents, queries, gains)


def judge(rows: Sequence[Row], *, port: int = 0, **settings: Any) -> JudgeServer:
    """A judge that knows `rows`; `settings` are those of JudgeConfig, of which vLLM is the kind."""
    return JudgeServer(JudgeConfig(**{"kind": "vllm", **settings}), knowledge(rows), port=port)


def windows(server: JudgeServer) -> list[str]:
    """The bodies of the windows that a judge was asked, the checks of the preflight left out."""
    return [call.body for call in list(server.calls) if call.purpose == "window"]


def rows_of(data: bytes | Path) -> list[Row]:
    """The rows of an output."""
    text = data if isinstance(data, bytes) else data.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def docids(row: Row) -> list[str]:
    """The documents of a row, the best first."""
    return [document["docid"] for document in row["ranking"]]
