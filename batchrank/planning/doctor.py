"""Examines a model server: what it is, whether it does what a job needs, and how fast it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from batchrank.calls import Prompt, Usage
from batchrank.clock import SystemClock
from batchrank.errors import NoServerError, ServerError
from batchrank.planning.forecast import Forecast, forecast, pairs_in
from batchrank.planning.known import known_lines
from batchrank.planning.outlook import Outlook, end_of_next, look_ahead
from batchrank.prompts.render import QueryTexts, text_of
from batchrank.ranking.job import Job
from batchrank.running.night import End
from batchrank.serving.capacity import to_fill
from batchrank.serving.connection import Connection, connect
from batchrank.serving.firstserver import prove
from batchrank.serving.preflight import Profile
from batchrank.serving.quiethours import Curfew
from batchrank.serving.sanity import sanity_requests
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_templates
from batchrank.spec.ways import answer_tokens
from batchrank.values import Window


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second over `calls` calls, `in_flight` at a time.

    `pairs` are the documents that a reranker compared with a query.
    """

    calls: int
    in_flight: int
    seconds: float
    usage: Usage
    pairs: int = 0

    @property
    def prompt_tokens(self) -> float:
        """Prompt tokens read a second."""
        return self.usage.prompt_tokens / self.seconds

    @property
    def completion_tokens(self) -> float:
        """Tokens generated a second."""
        return self.usage.completion_tokens / self.seconds


@dataclass(frozen=True, slots=True)
class Findings:
    """What an examination found; `forecast`, `end` and `outlook` only where an input was given.

    `now` is when it ended, in seconds since the epoch, and when the run of `end` would begin.
    `readings` are the stages' by their names in a job spec; `refusal` is why a run would not start.
    """

    url: str
    readings: tuple[str, ...]
    profile: Profile
    speed: Speed
    refusal: str | None
    now: float
    forecast: Forecast | None = None
    end: End | None = None
    outlook: Outlook | None = None


async def examine(spec: JobSpec, source: str | None, say: Callable[[str], None]) -> Findings:
    """Run the preflight in full and measure.

    Raises NoServerError where a job could not start, StoppedError in quiet hours.
    """
    templates = await asyncio.to_thread(load_templates, spec)
    clock = SystemClock()
    # Nobody wants to wait for an examination until the evening.
    gate = Curfew(spec.hours_of_quiet, clock, say).refuse
    async with connect(spec, answer_tokens(spec), say, say, gate) as opened:
        connection, profile = await prove(opened, spec, templates, say, say)
        job = Job(spec, templates, profile)
        in_flight = spec.concurrency or to_fill(profile.kind, profile.slots)
        found = None
        if source is not None:
            say("counting what the input takes")
            async with known_lines(job) as known:
                found = await forecast(job, source, samples=2 * in_flight, known=known)
        prompts = found.samples if found and found.samples else _trial_prompts(job, in_flight)
        say(f"measuring with {len(prompts)} calls, {in_flight} at a time")
        try:
            speed = await _measure(connection, prompts, in_flight, spec.timeout)
        except ServerError as error:
            raise NoServerError.at(connection.backend.url, error) from error
        readings = tuple(stage.answer for stage in spec.stages)
        end = outlook = None
        now = clock.wall()
        if found is not None:
            # The same kind of calls at the same load: time goes with the tokens of the prompts.
            measured = sum(job.cut.counter.count(text_of(prompt)) for prompt in prompts)
            end = await end_of_next(spec, job.key, now)
            pace = measured / speed.seconds
            outlook = await look_ahead(job, source or "-", found, pace, end, now)
        url, refusal = connection.backend.url, profile.refusal(spec.max_fallback)
        return Findings(url, readings, profile, speed, refusal, now, found, end, outlook)


async def _measure(
    connection: Connection, prompts: Sequence[Prompt], in_flight: int, seconds: float
) -> Speed:
    backend = connection.backend
    turn = asyncio.Semaphore(in_flight)

    async def send(prompt: Prompt) -> Usage:
        async with turn:
            return (await backend.send(backend.encode(prompt), seconds)).usage

    start = time.perf_counter()
    usages = await asyncio.gather(*(send(prompt) for prompt in prompts))
    taken = time.perf_counter() - start
    return Speed(len(prompts), in_flight, taken, sum(usages, Usage()), sum(map(pairs_in, prompts)))


def _trial_prompts(job: Job, count: int) -> list[Prompt]:
    """Prompts of the built-in trial, each another rotation so that no cache answers them."""
    prompts = []
    for number in range(count):
        request, _ = sanity_requests()[number % len(sanity_requests())]
        docids = request.docids
        turn = number % len(docids)
        way = job.ways[0]
        shown = (docids[turn:] + docids[:turn])[: way.reader.most]
        window = Window(shown, shown, min(2, len(shown)))
        texts = QueryTexts(request, len(docids), job.cut)
        prompts.append(way.reader.prompt(texts, window, way.means))
    return prompts
