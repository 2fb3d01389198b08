"""Lets those who watch a job know that its command ended before anything of it ran."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from batchrank.errors import BatchrankError, DiskError, StoreInUseError
from batchrank.formats.wording import displayable
from batchrank.progress.snapshot import Snapshot
from batchrank.progress.status import read_status, write_status
from batchrank.spec.jobspec import JobSpec
from batchrank.store.lock import is_locked
from batchrank.version import __version__


@contextmanager
def refusals_told(spec: JobSpec) -> Iterator[None]:
    """Put an error that ends the command into the status file and the metrics of `spec`.

    Not where the run has told of it itself, and nothing where another run is on: it is that one's.
    """
    began = time.time()
    try:
        yield
    except StoreInUseError:
        raise
    except BatchrankError as error:
        with suppress(BatchrankError, OSError):  # what failed first is told
            # A store called "/" or "." is what was refused.
            if spec.store.name and not is_locked(spec.store) and not _is_told(spec, began):
                _tell(spec, error, began)
        raise


def _is_told(spec: JobSpec, began: float) -> bool:
    last = read_status(spec.store)
    return last is not None and last.process == os.getpid() and last.written >= began


def _tell(spec: JobSpec, error: BatchrankError, began: float) -> None:
    now = time.time()
    snapshot = Snapshot(
        version=__version__,
        process=os.getpid(),
        written=now,
        store=displayable(str(spec.store)),
        input=displayable(spec.input or ""),
        output=displayable(spec.output or ""),
        started=began,
        seconds=now - began,
        state="ended",
        exit_code=error.exit_code,
        reasons=(str(error),),
    )
    # Where no run has told of itself the file may be anything, even the input.
    if read_status(spec.store) is not None:
        write_status(spec.store, snapshot)
    if spec.metrics_textfile is not None:
        with suppress(DiskError, ImportError):
            from batchrank.live.metrics import leave  # noqa: PLC0415 - an extra

            leave(spec.metrics_textfile, snapshot)
