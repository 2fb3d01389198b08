"""Starts llama.cpp's own HTTP server for one GGUF file and stops it again.

llama.cpp comes with `xllamacpp` (extra `embedded`) and runs in a child process: in this process,
loading a model holds the interpreter's lock from first to last, stopping while a request runs
never ends, and a crash in native code would take the job with it.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import signal
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from batchrank.errors import NoServerError, UsageError

_PROGRAM = Path(__file__).with_name("embedded_process.py")
_CAUSE = "error loading model: "


class EmbeddedServer:
    """One llama.cpp server on a free loopback port; leaving the context stops it."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def start(
        self, model_path: Path, context_tokens: int, slots: int = 1, threads: int | None = None
    ) -> str:
        """Load the model and return the server's base URL once it answers.

        `context_tokens` is what each of the `slots` can hold; llama.cpp rounds it up to 256 and
        caps it at what the model was trained for. `threads` None leaves it to llama.cpp.
        Raises UsageError where the extra or a readable GGUF file is missing, NoServerError where
        llama.cpp can't load it. A start that is interrupted leaves no process behind.
        """
        log = await asyncio.to_thread(_prepare, model_path)
        with log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                # Without -P the modules beside the program would hide those of the library.
                "-P",
                str(_PROGRAM),
                str(model_path),
                str(context_tokens),
                str(slots),
                str(threads or 0),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
            assert self._process.stdout is not None
            try:
                address = (await self._process.stdout.readline()).decode().strip()
                if not address:
                    code = await self._process.wait()
                    reason = await asyncio.to_thread(_reason, log, code)
                    raise NoServerError(f"llama.cpp can't load {model_path}: {reason}.")
            except BaseException:
                await self.stop()
                raise
        return address

    async def stop(self) -> None:
        """End the server at once, whatever it is doing; without one, do nothing."""
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


async def fingerprint(model_path: Path) -> str:
    """The SHA-256 of a model file in hex: the identity of its weights.

    Raises UsageError where the file can't be read.
    """
    return await asyncio.to_thread(_sha256, model_path)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"The model {path} can't be read: {error.strerror}.") from error


def _prepare(model_path: Path) -> IO[bytes]:
    """Refuse what can't work, then open a file for llama.cpp's messages for the caller to close."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise UsageError("The embedded backend needs llama.cpp: pip install 'batchrank[embedded]'.")
    try:
        with model_path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise UsageError(f"The model {model_path} can't be read: {error.strerror}.") from error
    if magic != b"GGUF":
        raise UsageError(f"The model {model_path} is no GGUF file: it starts with {magic!r}.")
    return tempfile.TemporaryFile()


def _reason(log: IO[bytes], code: int) -> str:
    """Why the server ended: llama.cpp's own words, else its last line, else the exit code."""
    log.seek(0)
    lines = log.read().decode(errors="replace").split("\n")
    causes = [line.split(_CAUSE)[1] for line in lines if _CAUSE in line]
    if causes:
        return causes[-1]
    if code < 0:
        # For example SIGILL on a processor without AVX2, or SIGKILL where memory ran out.
        return f"it was ended by {signal.Signals(-code).name}"
    return next((line for line in reversed(lines) if line.strip()), f"exit code {code}")
