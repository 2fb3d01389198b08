"""How long a job will take, how much of it a night can hold, and which settings would fit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace

from batchrank.errors import UsageError
from batchrank.planning.forecast import Forecast, forecast
from batchrank.ranking.job import Job
from batchrank.running.night import End, end_of, night_before
from batchrank.spec.jobspec import JobSpec
from batchrank.store.store import Store

_SAMPLE = 100
"""Lines by which other settings are compared with those of the job."""
_DEPTHS = (50, 30, 20)
_SHORT_DOCUMENT = 100
_FORESEEABLE_SECONDS = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class Choice:
    """Flags to add, and the hours that the job would take with them."""

    flags: str
    hours: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """Hours for what is left of an input, and what is done by the end of the night.

    `hours` and `seconds_left` are without quiet hours; with them it is done at `done_at`, in
    seconds since the epoch, None where that is more than a year ahead. `queries` and `weight` are
    shares from 0 to 1, what is known counts as done; `fitting` are settings with which all would be
    done. Without a deadline all is done, and nothing needs to fit.
    """

    hours: float
    seconds_left: float | None
    done_at: float | None
    queries: float
    weight: float
    fitting: tuple[Choice, ...]


async def look_ahead(
    job: Job, source: str, found: Forecast, pace: float, end: End, now: float
) -> Outlook:
    """What becomes of `source`, of which `found` is the forecast, at `pace` prompt tokens a second.

    `end` is that of a run that begins `now`. Time goes with the tokens of prompts.
    """
    seconds = found.prompt_tokens / pace
    left, hours = end.seconds, job.spec.hours_of_quiet
    done_at = None
    if seconds < _FORESEEABLE_SECONDS:
        done_at = now + seconds if hours is None else hours.after(now, seconds)
    outlook = Outlook(seconds / 3600, left, done_at, 1.0, 1.0, ())
    if left is None or seconds <= left:
        return outlook
    queries, weight = _done(found, pace * left)
    fitting = []
    if source != "-":  # a pipe has been read
        # Other settings are another job, of which nothing is known yet.
        whole = seconds * found.queries / max(1, len(found.loads))
        own = await forecast(_sampled(job, job.spec), source)
        for flags, spec in _cheaper(job.spec):
            other = await forecast(_sampled(job, spec), source)
            needed = whole * other.prompt_tokens / max(1, own.prompt_tokens)
            if needed <= left:
                fitting.append(Choice(flags, needed / 3600))
    return replace(outlook, queries=queries, weight=weight, fitting=tuple(fitting))


async def end_of_next(spec: JobSpec, job: bytes | None, now: float) -> End:
    """The end of a run of the job with key `job` that begins `now`, by what the store says of it.

    None stands for a job that is not known yet.
    """
    last = None
    if (
        job is not None
        and spec.deadline is not None
        and await asyncio.to_thread(spec.store.is_file)
    ):
        async with await Store.open(spec.store) as store:
            last = await night_before(store, job, spec)
    return end_of(spec, now, now, last)


def _done(found: Forecast, tokens: float) -> tuple[float, float]:
    """Shares of the queries and of their weight that so many tokens do, the heaviest first."""
    order = sorted(range(len(found.weights)), key=lambda place: -found.weights[place])
    done = weight = 0.0
    for place in order:
        tokens -= found.loads[place]
        if tokens < 0:
            break
        done += 1
        weight += found.weights[place]
    total = found.known_weight + sum(found.weights)
    shares = (found.known + done) / max(1, found.known + len(order))
    return shares, (found.known_weight + weight) / total if total else 1.0


def _sampled(job: Job, spec: JobSpec) -> Job:
    limit = min(spec.limit or _SAMPLE, _SAMPLE)
    return replace(job, spec=spec.model_copy(update={"limit": limit}))


def _cheaper(spec: JobSpec) -> Iterator[tuple[str, JobSpec]]:
    """Settings that cost less, those that lose least first, with their flags."""
    single = spec.without_optional_passes()
    if single != spec and spec.stage is None:
        yield f"--passes {single.passes} --merge-passes {single.merge_passes}", single
    changes = [("depth", depth) for depth in _DEPTHS if depth < spec.depth and spec.stage is None]
    if spec.max_doc_tokens > _SHORT_DOCUMENT:
        changes.append(("max_doc_tokens", _SHORT_DOCUMENT))
    given = {name: getattr(spec, name) for name in spec.model_fields_set}
    for name, value in changes:
        try:
            # Validated anew: not every depth goes with every strategy.
            other = JobSpec.model_validate({**given, name: value})
        except UsageError:
            continue
        yield f"--{name.replace('_', '-')} {value}", other
