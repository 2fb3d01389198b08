"""Serves a model's folder by `vllm serve` on a free loopback port until its stdin closes.

Run as a program by `server.EmbeddedServer`, with the arguments VLLM FOLDER CONTEXT GPUS. It prints
the address once the model is loaded; all that vLLM writes goes to stderr.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

_POLL_SECONDS = 0.2
_ANSWER_SECONDS = 5.0
_MEMORY = 0.9
"""Of a GPU's memory: what vLLM takes of a whole one by itself."""


def arguments(folder: Path, port: int, context: int, gpus: float) -> list[str]:
    """What `vllm` is called with; see `runtimes.Load` for `context` and `gpus`."""
    known = _trained_for(folder)
    given = {
        "host": "127.0.0.1",
        "port": port,
        # The name in the answers: without it clients would see a path of this machine.
        "served-model-name": folder.name,
        # Else it keeps room for the longest text that the model knows, or finds none for it.
        "max-model-len": min(context, known) if known else context,
        "uvicorn-log-level": "warning",
    }
    if gpus > 1:
        given["tensor-parallel-size"] = int(gpus)
    elif 0 < gpus < 1:
        given["gpu-memory-utilization"] = round(_MEMORY * gpus, 3)
    return ["serve", str(folder), *(f"--{name}={value}" for name, value in given.items())]


def _trained_for(folder: Path) -> int | None:
    """Tokens of the longest text that a model knows; beyond them vLLM refuses to start."""
    config = json.loads((folder / "config.json").read_bytes())
    for part in (config, config.get("text_config")):
        if isinstance(part, dict) and isinstance(part.get("max_position_embeddings"), int):
            return int(part["max_position_embeddings"])
    return None


def serve(vllm: str, folder: Path, context: int, gpus: float) -> int:
    """Serve until vLLM ends by itself: its exit code. All processes end when stdin closes."""
    watched, held = os.pipe()  # the other end closes with this process, and is inherited by none
    if os.fork() == 0:
        os.close(held)
        _end_with(watched)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [vllm, *arguments(folder, port, context, gpus)]
    process = subprocess.Popen(  # noqa: S603 - the user's own
        command, stdin=subprocess.DEVNULL, stdout=sys.stderr
    )
    while process.poll() is None:
        if _is_loaded(port):
            sys.stdout.write(f"http://127.0.0.1:{port}\n")
            sys.stdout.flush()
            break
        time.sleep(_POLL_SECONDS)
    return process.wait()


def _end_with(watched: int) -> NoReturn:
    """End all processes when stdin closes or the first of them ends, from a process of its own.

    For Ray kills the children of a worker and not theirs, and who waits for the first process may
    wait (uvloop does) until nobody holds its stdin any more.
    """
    os.close(1)
    select.select([0, watched], [], [])  # both have nothing to read but their end
    os.killpg(0, signal.SIGKILL)
    os._exit(0)


def _is_loaded(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    # As with llama.cpp, the parent decides when to stop; vLLM itself ends with SIGTERM.
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, signal.SIG_IGN)
    code = serve(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    if code < 0:  # a signal ended it: say so by the same end
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
