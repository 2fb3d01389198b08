"""What a job will take, found by driving its real strategy without a model."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

from batchrank.answers import permutation
from batchrank.answers.reading import Reading
from batchrank.calls import ChatPrompt, Prompt, RerankPrompt
from batchrank.errors import LineError, PromptError
from batchrank.formats.requests import parse_request
from batchrank.formats.sources.source import read_queries
from batchrank.keys import line_digest, short_hash
from batchrank.planning.known import KnownLines
from batchrank.prompts.render import QueryTexts, text_of
from batchrank.ranking.job import Job
from batchrank.ranking.outcomes import Asked
from batchrank.ranking.reranker import Reranker
from batchrank.running.inputs import source_of
from batchrank.serving.slots import Priority
from batchrank.values import Status, Window

_GENERATED = {"grammar": 2.0, "regex": 2.0, "json": 3.0, "text": 6.0}
"""Tokens an identifier takes in each form, separators in; JSON has a frame of about ten beside."""


def _numbers() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Forecast:
    """Counts of one input; tokens are estimates in the model's own tokens.

    `known` of the queries are ranked already: windows and all that follows are those of the others.
    """

    queries: int = 0
    known: int = 0
    failed: int = 0
    windows: int = 0
    calls: int = 0
    pairs: int = 0
    """Documents that a reranker compares with a query."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    largest_prompt: int = 0
    samples: list[Prompt] = field(default_factory=list, repr=False)
    weights: array[float] = field(default_factory=_numbers, repr=False)
    """Of each query that is left."""
    known_weight: float = 0.0
    loads: array[float] = field(default_factory=_numbers, repr=False)
    """Prompt tokens of each query that is left."""

    def as_dict(self) -> dict[str, int]:
        """The counts, for --json."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.type == "int"}


class _Counts:
    """Stands in for an asker: answers every window by its prior order and counts what it cost."""

    def __init__(self, job: Job, forecast: Forecast, samples: int) -> None:
        self._job = job
        self._forecast = forecast
        self._samples = samples
        self._prompts: set[int] = set()

    async def ask_round(
        self,
        windows: Sequence[Window],
        texts: QueryTexts,
        _priority: Priority,
        _sent: Callable[[], None],
    ) -> list[Asked]:
        forecast = self._forecast
        asked = []
        for window in windows:
            way = self._job.ways[window.stage]
            wanted = way.reader.wanted(window)
            prompt = way.reader.prompt(texts, window, way.means)
            forecast.windows += 1
            if (text := short_hash(text_of(prompt))) not in self._prompts:
                self._prompts.add(text)
                self._count(prompt)
            everything = Reading(tuple(range(1, len(window.shown) + 1)), Status.OK)
            asked.append(Asked(window, permutation(window, everything), wanted, None, ()))
        return asked

    def _count(self, prompt: Prompt) -> None:
        forecast = self._forecast
        tokens = self._job.cut.counter.count(text_of(prompt))
        forecast.calls += 1
        forecast.pairs += pairs_in(prompt)
        forecast.prompt_tokens += tokens
        forecast.completion_tokens += _generated(prompt)
        forecast.largest_prompt = max(forecast.largest_prompt, tokens)
        if len(forecast.samples) < self._samples:
            forecast.samples.append(prompt)


def _generated(prompt: Prompt) -> int:
    """Tokens of an answer; likelihoods and relevances generate none."""
    if not isinstance(prompt, ChatPrompt):
        return 0
    return min(prompt.max_tokens, round(_GENERATED[prompt.form] * prompt.wanted))


def pairs_in(prompt: Prompt) -> int:
    """Pairs of a query and a document that a reranker scores in one call."""
    return len(prompt.documents) if isinstance(prompt, RerankPrompt) else 0


async def forecast(
    job: Job, source: str, *, samples: int = 0, known: KnownLines | None = None
) -> Forecast:
    """Count what ranking `source` takes, and keep the first `samples` prompts.

    Lines that are `known` take nothing; None: none is.

    Nothing is known of later windows before earlier ones are answered, so equal windows can be told
    beforehand only among segments. Raises UsageError as `read_queries`.
    """
    found = Forecast()
    counts = _Counts(job, found, samples)
    spec = job.spec
    reranker = Reranker(job.strategy, job.merging, spec.deepest, job.cut, counts, spec.selection)
    holders: dict[int, bytes] = {}
    blocks = read_queries(source_of(job.spec, source), job.spec.limit)
    while (block := await asyncio.to_thread(next, blocks, None)) is not None:
        digests = [line_digest(line.data) for line in block]
        done = [False] * len(block) if known is None else await known.among(digests)
        for line, digest, is_done in zip(block, digests, done, strict=True):
            try:
                request = parse_request(line.data).request
            except LineError:
                found.failed += 1
                continue
            # As in a run: a qid belongs to its first line, whatever another one asks under it.
            if holders.setdefault(short_hash(request.query.qid), digest) != digest:
                found.failed += 1
                continue
            found.queries += 1
            if is_done:
                found.known += 1
                found.known_weight += request.weight
                continue
            before = found.prompt_tokens
            try:
                await reranker.rank(request, 0)
            except PromptError:
                found.queries -= 1
                found.failed += 1
                continue
            found.weights.append(request.weight)
            found.loads.append(found.prompt_tokens - before)
    return found
