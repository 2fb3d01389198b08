"""Tries a grid of settings on judged queries and chooses the best ranking for the fewest tokens."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from batchrank.errors import BudgetSpentError, RejectedError, UnfitServerError, UsageError
from batchrank.measuring.grid import Axes, combinations
from batchrank.measuring.trials import Settings, Trial, Trials, given, without_stages
from batchrank.metrics.evaluation import NDCG, Qrels, Scored, Scores, evaluate, parse_measures
from batchrank.metrics.significance import Difference, paired_difference
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_templates
from batchrank.spec.stagespec import StageSpec

AS_GIVEN = "the job as given"
_WHOLE = frozenset(("stage", "preset"))
"""Keys that stand for all of how a job ranks."""
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


def settings(
    trials: Trials, base: JobSpec, grid: Sequence[Axes]
) -> tuple[list[Setting], dict[str, str]]:
    """The job as given, then every combination of each table; those that rank alike once.

    With them, why others make no job.
    """
    found: list[Setting] = []
    impossible: dict[str, str] = {}
    seen: list[object] = []
    for changes in ({}, *itertools.chain.from_iterable(map(combinations, grid))):
        values = _changed(base, changes)
        name = _name(base, changes, values)
        try:
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
    refusal: UnfitServerError | None = None
    for number, setting in enumerate(wanted, 1):
        say(f"{number} of {len(wanted)}: {setting.name}")
        try:
            done.append((setting, await trials.run(setting.values)))
        except BudgetSpentError:
            unreached = [one.name for one in wanted[number - 1 :]]
            break
        except UnfitServerError as error:
            impossible[setting.name] = str(error)
            refusal = refusal or error
    if not done:
        raise refusal or BudgetSpentError(
            f"{AS_GIVEN} needs more calls than --budget allows: give --budget more, or a smaller "
            "--sample"
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


def _changed(base: JobSpec, changes: Settings) -> dict[str, object]:
    """The settings of `base` with some changed; stages or a preset replace all of its ranking.

    Of a cascade it is the last stage that changes.
    """
    if changes.keys() & _WHOLE:
        return {**without_stages(base), **changes}
    own = given(base)
    if base.stage is None:
        return {**own, **changes}
    of_stage = {key: changes[key] for key in changes if key in StageSpec.model_fields}
    others = {key: changes[key] for key in changes if key not in of_stage}
    *first, last = (stage.model_dump(exclude_unset=True) for stage in base.stage)
    return {**own, **others, "stage": [*first, {**last, **of_stage}]}


def _name(base: JobSpec, changes: Settings, values: Settings) -> str:
    """All that makes a setting differ from the job as given."""
    in_last = " in the last stage" if base.stage is not None and not changes.keys() & _WHOLE else ""
    told = [
        f"{key} {_shown(value)}{in_last if key in StageSpec.model_fields else ''}"
        for key, value in changes.items()
    ]
    if dropped := sorted(given(base).keys() - values.keys()):
        told.append(f"without the job's {' and '.join(dropped)}")
    return ", ".join(told) or AS_GIVEN


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return " + ".join(map(_shown, value))
    if isinstance(value, dict):
        return f"({', '.join(f'{key} {_shown(one)}' for key, one in value.items())})"
    return str(value)


def _measured(
    done: Sequence[tuple[Setting, Trial]], qrels: Qrels, weight: float
) -> tuple[float, list[Tried]]:
    """The first stage's nDCG@10, and every setting measured, cheapest first."""
    measures = parse_measures([NDCG])
    sample = [one.qid for one in done[0][1].queries]
    judged = {qid: qrels[qid] for qid in sample}

    def score(run: Scores) -> Scored:
        return evaluate(measures, judged, run)[NDCG]

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
                is_noise=place != best and not to_best.is_sure,
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
