"""The job spec of the night a command is about, and the input it names."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from batchrank.cli.loop import run_loop
from batchrank.errors import UsageError
from batchrank.nightly.day import broken_off, spec_of_the_night
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_spec
from batchrank.spec.walltime import local
from batchrank.store.records import Run


def tonight(job: Path | None, flags: Mapping[str, object], day: datetime | None) -> JobSpec:
    """The spec in which `{date}` is `day`, or else the day on which the night began."""
    if day is not None:
        return load_spec(job, flags, day.date())
    return run_loop(spec_of_the_night(*_days(job, flags)))


def broken_off_last(job: Path) -> Run | None:
    """The run of last night, or of this one, that is to go on; None where there is none."""
    return run_loop(broken_off(*_days(job, {})))


def _days(job: Path | None, flags: Mapping[str, object]) -> tuple[JobSpec, JobSpec, float]:
    """The specs of today and of yesterday, and what time it is."""
    now = time.time()
    today = local(now).date()
    before = load_spec(job, flags, today - timedelta(days=1))
    return load_spec(job, flags, today), before, now


def input_of(spec: JobSpec) -> str:
    """The input that was given, or that the job spec names; UsageError where there is none."""
    if spec.input is None:
        raise UsageError('no input: name a file of queries, or say input = "FILE" in the job spec')
    return spec.input
