"""Starts the HTTP server of one model, as a child process, and ends it again.

llama.cpp comes with `xllamacpp` (extra `embedded`) and runs in a child process: in this process,
loading a model holds the interpreter's lock from first to last, stopping while a request runs
never ends, and a crash in native code would take the job with it. vLLM is one by itself.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from batchrank.backends.embedded.runtimes import Load, runtime_of
from batchrank.errors import NoServerError

_CAUSE = "error loading model: "
_EXCEPTION = re.compile(r"\b[A-Z]\w*(?:Error|Exception): .+")
_MOST_LOG = 1024 * 1024


class EmbeddedServer:
    """One server on a free loopback port; leaving the context stops it."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._log: IO[bytes] | None = None
        self._name = ""
        self._why: str | None = None

    async def start(self, model_path: Path, load: Load) -> str:
        """Load the model and return the server's base URL once it answers.

        Raises UsageError where the program or a readable model is missing, NoServerError where
        it can't be loaded. A start that is interrupted leaves no process behind.
        """
        runtime = await asyncio.to_thread(runtime_of, model_path, load)
        self._name, self._why = runtime.name, None
        self._log = await asyncio.to_thread(tempfile.TemporaryFile)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *runtime.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=self._log,
                start_new_session=True,
            )
            assert self._process.stdout is not None
            address = (await self._process.stdout.readline()).decode().strip()
            if not address:
                code = await self._process.wait()
                reason = await asyncio.to_thread(_reason, self._log, code)
                raise NoServerError(f"{self._name} can't load {model_path}: {reason}.")
        except OSError as error:
            await self.stop()
            raise NoServerError(f"{self._name} can't be started: {error.strerror}.") from error
        except BaseException:
            await self.stop()
            raise
        return address

    async def ended(self) -> str:
        """Wait until a server that was started ends, by itself or by `end`; how that came."""
        assert self._process is not None
        assert self._log is not None
        code = await self._process.wait()
        why = self._why or await asyncio.to_thread(_reason, self._log, code)
        return f"{self._name} has ended: {why}"

    def end(self, why: str) -> None:
        """End the process of a server that was started, which `ended` then tells."""
        assert self._process is not None
        self._why = why
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """End the server at once, whatever it is doing; without one, do nothing."""
        process, self._process = self._process, None
        log, self._log = self._log, None
        if process is not None:
            # It leads a group of its own, of which some may be left where it is gone.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if log is not None:
            log.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


def _reason(log: IO[bytes], code: int) -> str:
    """Why the server ended: what it says of that, else its last line, else the exit code.

    llama.cpp has words of its own for a model that it can't load. Of vLLM's many tracebacks the
    first is the cause, and the last says "see above".
    """
    log.seek(max(0, log.seek(0, os.SEEK_END) - _MOST_LOG))
    lines = log.read().decode(errors="replace").split("\n")
    causes = [line.split(_CAUSE)[1] for line in lines if _CAUSE in line]
    if causes:
        return causes[-1]
    if code < 0:
        # For example SIGILL on a processor without AVX2, or SIGKILL where memory ran out.
        return f"it was ended by {signal.Signals(-code).name}"
    for line in lines:
        if found := _EXCEPTION.search(line):
            return found.group().rstrip(" .")
    return next((line for line in reversed(lines) if line.strip()), f"exit code {code}")
