"""What tells one model's files from another's: their hash."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path

from batchrank.errors import UsageError


async def fingerprint(model_path: Path) -> str:
    """The SHA-256 of a model in hex: of its file, or of all names and files of its folder.

    Hidden files and Markdown are left out of a folder: they are no part of a model. Raises
    UsageError where something can't be read.
    """
    return await asyncio.to_thread(_sha256, model_path)


async def identity_of(model_path: Path) -> str:
    """The identity of a model's weights, as `ServerInfo.identity` has it; raises as above."""
    kind = "folder" if await asyncio.to_thread(model_path.is_dir) else "gguf"
    return f"{kind} sha256:{await fingerprint(model_path)}"


def _sha256(path: Path) -> str:
    try:
        if not path.is_dir():
            return _digest(path)
        lines = "".join(f"{_digest(one)} {one.relative_to(path)}\n" for one in _files(path))
    except OSError as error:
        raise UsageError(f"The model {path} can't be read: {error.strerror}.") from error
    return hashlib.sha256(lines.encode(errors="surrogateescape")).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.suffix != ".md" and path.is_file():
            yield path
