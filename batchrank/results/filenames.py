"""The names of a result's files, and whether the one that was written is still as it was."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from batchrank.formats.encoders.formats import ENDINGS, ending
from batchrank.values import OutputFormat, Shard

_REJECTED = ".rejected"
NO_FILE = "(no file)"
"""What stands for the output of a run whose rankings are taken from the store."""


def default_output(source: str, form: OutputFormat) -> str:
    """Where the result goes if nobody says: beside the input, or to stdout if that is a pipe."""
    if source == "-":
        return "-"
    path = Path(source.removesuffix(".gz").removesuffix(".zst"))
    stem = path.with_suffix("") if path.suffix in ENDINGS else path
    return f"{stem}.ranked.{ending(form)}"


def name_of_part(output: str, shard: Shard | None) -> str:
    """The same output for one shard: a name of its own, since all may write into one folder."""
    if shard is None or output == "-":
        return output
    packed = next((end for end in (".gz", ".zst") if output.endswith(end)), "")
    path = Path(output.removesuffix(packed))
    part = f"{path.stem}.{shard.index}-of-{shard.count}{path.suffix}{packed}"
    return str(path.with_name(part))


def rejected_name(output: str) -> str | None:
    """Where a result goes that passes no gate: nowhere if the output is a pipe."""
    return None if output == "-" else f"{output}{_REJECTED}"


def remove_rejected(output: str) -> bool:
    """Remove what an earlier run, which passed no gate, left beside `output`; whether it did.

    What can't be removed stays: the result is what counts.
    """
    try:
        Path(f"{output}{_REJECTED}").unlink()
    except OSError:
        return False
    return True


def summary_name(output: str) -> str | None:
    """Where it is kept how the run of a result ended: nowhere if the output is no file."""
    path = Path(output)
    is_no_file = output == "-" or (path.exists() and not path.is_file())
    return None if is_no_file else f"{output}.summary.json"


def state_of(path: str, form: OutputFormat, top_k: int | None) -> dict[str, object] | None:
    """What tells whether the file written to `path` is still as it was; None for a pipe."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return {
        "path": os.path.realpath(path),
        "format": form,
        "top_k": top_k,
        "inode": found.st_ino,
        "size": found.st_size,
        "changed_ns": found.st_mtime_ns,
    }
