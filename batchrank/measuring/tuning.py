"""Tries a grid of settings on judged queries and chooses the best ranking for the fewest tokens."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from batchrank.errors import BudgetSpentError, NoServerError, RejectedError, UsageError
from batchrank.formats.wording import quoted
from batchrank.measuring.trials import Settings, Trial, Trials, given, without_stages
from batchrank.metrics.evaluation import Qrels, Scored, Scores, evaluate, parse_measures
from batchrank.metrics.significance import Difference, paired_difference
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_templates
from batchrank.spec.stagespec import StageSpec
from batchrank.spec.tables import read_toml

MEASURE = "nDCG@10"
AS_GIVEN = "the job as given"
Axes = Mapping[str, object]
"""A table of a grid: a key of a job spec with one value, or a list of values to try each of."""

DEFAULT_GRID: tuple[Axes, ...] = (
    {"depth": [40, 60]},
    {"answer": ["full", "logprobs"]},
    {"max_doc_tokens": [60, 120]},
    {"merge_passes": ["forward,shuffle:1"]},
    {"window_size": [10, 25]},
    {"strategy": ["topdown", "sliding"]},
    {"template": ["direct-zh"]},
    {"preset": ["thorough"]},
)
"""One thing changed at a time, from the cheap to the dear: a budget that ends has most of them."""
_VARIED = frozenset(StageSpec.model_fields) | {"preset", "stage", "thinking", "max_doc_tokens"}
_SIGMAS = 1.96
"""Standard errors from the middle of a 95% interval to its end."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A job to try: what it changes of the job as given, and all its settings."""

    name: str
    changes: Settings
    values: Settings


@dataclass(frozen=True, slots=True)
class Tried:
    """What a setting came to; calls, tokens and cost are means over the queries.

    `cost` is prompt tokens and weighted generated ones. `to_best` compares it with the setting of
    the highest nDCG@10, that one with the first stage. `rejected` names a gate it does not pass.
    """

    setting: Setting
    ndcg: float
    calls: float
    prompt_tokens: float
    generated_tokens: float
    cost: float
    to_best: Difference
    is_noise: bool
    on_frontier: bool
    rejected: str | None


@dataclass(frozen=True, slots=True)
class Tuning:
    """All that was tried, cheapest first. `impossible` says why a setting can't be tried here.

    `unreached` settings are those that the budget did not allow.
    """

    queries: int
    generated_weight: float
    calls: int
    first_stage: float
    tried: list[Tried]
    best: Tried
    chosen: Tried
    unreached: list[str] = field(default_factory=list)
    impossible: dict[str, str] = field(default_factory=dict)


def read_grid(path: Path) -> tuple[Axes, ...]:
    """Read the `[[try]]` tables of a TOML file; raises UsageError."""
    values = read_toml(path, "grid")
    tables = values.pop("try", None)
    if values or not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise UsageError(f"grid {quoted(path)}: expected [[try]] tables and nothing else")
    for table in tables:
        if unknown := sorted(table.keys() - _VARIED):
            raise UsageError(
                f"grid {quoted(path)}: {unknown[0]!r} can't be varied; what can is "
                f"{', '.join(sorted(_VARIED))}"
            )
    return tuple(tables)


def settings(
    trials: Trials, base: JobSpec, grid: Sequence[Axes]
) -> tuple[list[Setting], dict[str, str]]:
    """The job as given, then every combination of each table; those that rank alike once.

    With them, why others make no job.
    """
    found: list[Setting] = []
    impossible: dict[str, str] = {}
    seen: list[object] = []
    for changes in ({}, *itertools.chain.from_iterable(map(_combinations, grid))):
        name = ", ".join(f"{key} {_shown(value)}" for key, value in changes.items()) or AS_GIVEN
        try:
            values = _changed(base, changes)
            spec = trials.spec(values)
            templates = [template.digest for template in load_templates(spec)]
        except UsageError as error:
            if not changes:
                raise
            impossible[name] = str(error)
            continue
        identity = (spec.ranking_settings(), templates)
        if identity not in seen:
            seen.append(identity)
            found.append(Setting(name, changes, values))
    return found, impossible


async def tune(
    trials: Trials,
    base: JobSpec,
    grid: Sequence[Axes],
    qrels: Qrels,
    generated_weight: float,
    say: Callable[[str], None],
) -> Tuning:
    """Try every setting of the grid on the sample.

    Of settings whose nDCG@10 lies within one standard error of the best one's, the cheapest is
    chosen (the one-standard-error rule of Breiman et al. 1984); one that passes no gate is not.
    Raises RejectedError where none passes, BudgetSpentError where the budget allowed none, and as
    `Trials.run`.
    """
    wanted, impossible = await asyncio.to_thread(settings, trials, base, grid)
    done: list[tuple[Setting, Trial]] = []
    unreached: list[str] = []
    refusal: NoServerError | None = None
    for number, setting in enumerate(wanted, 1):
        say(f"{number} of {len(wanted)}: {setting.name}")
        try:
            done.append((setting, await trials.run(setting.values)))
        except BudgetSpentError:
            unreached = [one.name for one in wanted[number - 1 :]]
            break
        except NoServerError as error:
            impossible[setting.name] = str(error)
            refusal = refusal or error
    if not done:
        raise refusal or BudgetSpentError(
            f"{trials.calls} calls did not suffice for one setting: give --budget more"
        )
    first_stage, tried = await asyncio.to_thread(_measured, done, qrels, generated_weight)
    passed = [one for one in tried if one.rejected is None]
    if not passed:
        raise RejectedError(f"no setting passes the gates: {tried[0].rejected}")
    best = max(passed, key=lambda one: (one.ndcg, -one.cost))
    return Tuning(
        queries=len(done[0][1].queries),
        generated_weight=generated_weight,
        calls=trials.calls,
        first_stage=first_stage,
        tried=tried,
        best=best,
        chosen=next(one for one in passed if one is best or _is_within_an_error(one)),
        unreached=unreached,
        impossible=impossible,
    )


def _combinations(table: Axes) -> list[dict[str, object]]:
    options = [value if isinstance(value, list) else [value] for value in table.values()]
    return [dict(zip(table, values, strict=True)) for values in itertools.product(*options)]


def _changed(base: JobSpec, changes: Settings) -> dict[str, object]:
    """The settings of `base` with some changed; stages or a preset replace all of its ranking."""
    of_one_stage = base.stage is None or not changes.keys() & StageSpec.model_fields.keys()
    keeps = of_one_stage and not changes.keys() & {"stage", "preset"}
    return {**(given(base) if keeps else without_stages(base)), **changes}


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return " + ".join(map(_shown, value))
    if isinstance(value, dict):
        return " ".join(map(str, value.values()))
    return str(value)


def _measured(
    done: Sequence[tuple[Setting, Trial]], qrels: Qrels, weight: float
) -> tuple[float, list[Tried]]:
    """The first stage's nDCG@10, and every setting measured, cheapest first."""
    measures = parse_measures([MEASURE])
    sample = [one.qid for one in done[0][1].queries]
    judged = {qid: qrels[qid] for qid in sample}

    def score(run: Scores) -> Scored:
        return evaluate(measures, judged, run)[MEASURE]

    def values(scored: Scored) -> list[float]:
        return [scored.by_query[qid] for qid in sample]

    first_stage = score(done[0][1].first_stage)
    scored = [score(trial.scores) for _, trial in done]
    costs = [_cost(trial, weight) for _, trial in done]
    passing = [place for place, (_, trial) in enumerate(done) if trial.rejected is None]
    best = max(passing or range(len(done)), key=lambda place: (scored[place].value, -costs[place]))
    tried = []
    for place, (setting, trial) in enumerate(done):
        reference = first_stage if place == best else scored[best]
        to_best = paired_difference(values(reference), values(scored[place]))
        usage = [one.usage for one in trial.queries]
        tried.append(
            Tried(
                setting=setting,
                ndcg=scored[place].value,
                calls=sum(one.calls for one in trial.queries) / len(sample),
                prompt_tokens=sum(one.prompt_tokens for one in usage) / len(sample),
                generated_tokens=sum(one.completion_tokens for one in usage) / len(sample),
                cost=costs[place],
                to_best=to_best,
                is_noise=place != best and to_best.low <= 0 <= to_best.high,
                on_frontier=place in passing
                and not any(
                    costs[other] <= costs[place]
                    and (scored[other].value, -costs[other]) > (scored[place].value, -costs[place])
                    for other in passing
                ),
                rejected=trial.rejected,
            )
        )
    return first_stage.value, sorted(tried, key=lambda one: (one.cost, -one.ndcg))


def _cost(trial: Trial, weight: float) -> float:
    """Prompt and weighted generated tokens a query, whoever paid for them."""
    total = sum(
        one.usage.prompt_tokens + weight * one.usage.completion_tokens for one in trial.queries
    )
    return total / len(trial.queries)


def _is_within_an_error(one: Tried) -> bool:
    difference = one.to_best
    error = (difference.high - difference.low) / (2 * _SIGMAS)
    return difference.change >= -error
