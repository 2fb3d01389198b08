"""Serves one GGUF file with llama.cpp on a free loopback port until its stdin closes.

Run as a program by `server.EmbeddedServer`, with the arguments MODEL CONTEXT SLOTS THREADS.
It prints the address of the loaded server, and llama.cpp's errors on stderr.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import xllamacpp  # type: ignore[import-untyped]  # compiled, no stubs


def serve(model: Path, context: int, slots: int, threads: int) -> None:
    """Load `model`, print the server's address and hold it until stdin ends; never returns.

    `context` is in tokens a slot; `threads` 0 leaves the number to llama.cpp. Raises RuntimeError
    where llama.cpp can't load the model.
    """
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    # The name in the answers: without it clients would see a path of this machine.
    params.model_alias = {model.stem}
    params.n_ctx = context * slots
    params.n_parallel = slots
    if threads:
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
    # Prompts of a batch don't come back: a slot keeps the shared beginning, the rest is waste.
    params.cache_ram_mib = 0
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.verbosity = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    # Not an orderly exit: the server's destructor waits for ever while a request runs.
    os._exit(0)


if __name__ == "__main__":
    # The parent decides when to stop: work in flight is finished first, also after a Ctrl-C that
    # reaches the whole process group or a SIGTERM to every process of a service.
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, signal.SIG_IGN)
    serve(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
