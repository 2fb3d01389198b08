"""Says how a model leans on the order of the prompt, and whether further passes are worth it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from batchrank.errors import RejectedError, UsageError
from batchrank.fusion import borda
from batchrank.measuring.bias import (
    Bias,
    Favoured,
    Pairs,
    Presented,
    pairs_of,
    position_bias,
    winners_by_place,
)
from batchrank.measuring.comparison import Change, change
from batchrank.measuring.runs import falling
from batchrank.measuring.trials import Settings, Trial, Trials, without_stages
from batchrank.metrics.agreement import kendall, overlap
from batchrank.metrics.evaluation import NDCG, Qrels, Scores, evaluate, parse_measures
from batchrank.ranking.replay import Replayed
from batchrank.spec.jobspec import JobSpec

ORDERS = {"first stage": "forward", "reversed": "reverse", "shuffled": "shuffle:1"}
"""The presentations, by what they are called, as `passes` has them."""
TOP = 10
_PARTS = 10
_CONSISTENT = 0.9
"""Kendall tau between presentations from which on they say the same."""


@dataclass(frozen=True, slots=True)
class Alike:
    """How two presentations agree: means over the queries."""

    first: str
    second: str
    tau: float
    overlap: float


@dataclass(frozen=True, slots=True)
class Quality:
    """nDCG@10 of each presentation alone; `fused` compares it with and without a further pass."""

    first_stage: float
    alone: dict[str, float]
    fused: dict[str, Change]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that was found. `winners` are shares by part of the prompt, for each presentation.

    `unmoved` are shares of answers that repeat the prompt's order; `left_out` queries lacked a
    usable answer to one of the presentations.
    """

    queries: int
    window_size: int
    left_out: int
    calls: int
    alike: list[Alike]
    bias: Bias
    pairs: Pairs
    winners: dict[str, list[float]]
    unmoved: dict[str, float]
    quality: Quality | None
    favours: Favoured
    worth: str
    """`reverse`, `shuffled` or `none`."""
    sentence: str


def presentations(base: JobSpec) -> dict[str, Settings]:
    """The jobs that show one window of a query's best in each of the orders.

    Raises UsageError where no stage of `base` puts several documents in one prompt.
    """
    stage = next((one for one in base.stages if one.strategy != "pointwise"), None)
    if stage is None:
        raise UsageError(
            "a pointwise job shows one document a prompt: there is no order to lean on"
        )
    size = min(stage.window_size, stage.depth)
    answer = "logprobs" if stage.answer == "logprobs" else "full"
    template = {"template": stage.template} if stage.answer != "explain" and stage.template else {}
    ranking = {"strategy": "single", "window_size": size, "depth": size, "answer": answer}
    return {
        name: {**without_stages(base), **ranking, **template, "passes": passes}
        for name, passes in ORDERS.items()
    }


async def diagnose(trials: Trials, base: JobSpec, qrels: Qrels | None) -> Diagnosis:
    """Ask the sample in every presentation and compare.

    Raises UsageError as `presentations`; RejectedError where the answers are unusable; and as
    `Trials.run`.
    """
    found: dict[str, Trial] = {}
    windows: dict[str, list[list[Replayed]]] = {}
    for name, values in presentations(base).items():
        found[name] = await trials.run_well(values)
        windows[name] = await trials.windows(found[name])
    rows = [row for row in zip(*windows.values(), strict=True) if all(map(_is_usable, row))]
    if not rows:
        raise RejectedError("no query has a usable answer to each of the presentations")
    presented = [
        [Presented(asked.window.shown, asked.permutation.order) for (asked,) in row] for row in rows
    ]
    quality = None if qrels is None else await asyncio.to_thread(_quality, found, qrels)
    return await asyncio.to_thread(
        _diagnosed, presented, len(windows["first stage"]) - len(rows), trials.calls, quality
    )


def _is_usable(windows: Sequence[Replayed]) -> bool:
    return len(windows) == 1 and windows[0].permutation.is_usable


def _diagnosed(
    presented: Sequence[Sequence[Presented]], left_out: int, calls: int, quality: Quality | None
) -> Diagnosis:
    by_order = dict(zip(ORDERS, zip(*presented, strict=True), strict=True))
    alike = [_alike(by_order, *names) for names in combinations(ORDERS, 2)]
    pairs = [
        pairs_of(one, other)
        for one, other in zip(by_order["first stage"], by_order["reversed"], strict=True)
    ]
    size = max(len(query[0].shown) for query in presented)
    bias = position_bias(presented)
    tau = sum(one.tau for one in alike) / len(alike)
    worth, sentence = _verdict(bias, size, tau, quality)
    return Diagnosis(
        queries=len(presented),
        window_size=size,
        left_out=left_out,
        calls=calls,
        alike=alike,
        bias=bias,
        pairs=Pairs(
            *(
                sum(getattr(one, name) for one in pairs) / len(pairs)
                for name in ("same", "echoed", "against")
            )
        ),
        winners={
            name: winners_by_place(windows, min(_PARTS, size)) for name, windows in by_order.items()
        },
        unmoved={
            name: sum(one.order == one.shown for one in windows) / len(windows)
            for name, windows in by_order.items()
        },
        quality=quality,
        favours=bias.favours,
        worth=worth,
        sentence=sentence,
    )


def _alike(by_order: Mapping[str, Sequence[Presented]], first: str, second: str) -> Alike:
    both = [
        (one.order, other.order)
        for one, other in zip(by_order[first], by_order[second], strict=True)
    ]
    taus = [tau for one, other in both if (tau := kendall(one, other)) is not None]
    overlaps = [overlap(one, other, TOP) for one, other in both]
    return Alike(first, second, sum(taus) / len(taus), sum(overlaps) / len(overlaps))


def _quality(found: Mapping[str, Trial], qrels: Qrels) -> Quality:
    measures = parse_measures([NDCG])
    forward = found["first stage"]
    judged = {one.qid: qrels[one.qid] for one in forward.queries if one.qid in qrels}

    def score(run: Scores) -> dict[str, float]:
        return evaluate(measures, judged, run)[NDCG].by_query

    def mean(values: Mapping[str, float]) -> float:
        return sum(values.values()) / len(values)

    def with_pass(other: Trial) -> Scores:
        return {
            one.qid: falling(borda([one.ranking, two.ranking], one.docids))
            for one, two in zip(forward.queries, other.queries, strict=True)
        }

    scored = {name: evaluate(measures, judged, trial.scores)[NDCG] for name, trial in found.items()}
    return Quality(
        first_stage=mean(score(forward.first_stage)),
        alone={name: one.value for name, one in scored.items()},
        fused={
            name: change(
                NDCG,
                scored["first stage"],
                evaluate(measures, judged, with_pass(found[name]))[NDCG],
                "randomisation",
            )
            for name in ("reversed", "shuffled")
        },
    )


def _verdict(bias: Bias, size: int, tau: float, quality: Quality | None) -> tuple[str, str]:
    """Which pass is worth its cost, and one sentence that says so and why."""
    leaning = _leaning(bias, size)
    if quality is None:
        worth, why = _by_bias(bias.favours, tau)
    else:
        worth, why = _by_quality(quality)
    return worth, f"{leaning}: {why}."


def _leaning(bias: Bias, size: int) -> str:
    def places(value: float) -> str:
        return f"{value * (size - 1):+.1f}"

    front, ends = bias.front, bias.ends
    of_front = (
        f"{places(front.value)} of {size} places for the first over the last, "
        f"95% interval {places(front.low)} to {places(front.high)}"
    )
    of_ends = (
        f"{places(ends.value)} of {size} places for the ends over the middle, "
        f"95% interval {places(ends.low)} to {places(ends.high)}"
    )
    match bias.favours:
        case "first":
            return f"The model favours what stands first in the prompt ({of_front})"
        case "last":
            return f"The model favours what stands last in the prompt ({of_front})"
        case "ends":
            return f"The model favours both ends of the prompt ({of_ends})"
        case "middle":
            return f"The model favours the middle of the prompt ({of_ends})"
        case "nothing":
            return "The model has no position bias that matters"


def _by_bias(favours: Favoured, tau: float) -> tuple[str, str]:
    """Without judgements: what a pass would even out, and whether that can be wanted."""
    if favours in ("ends", "middle"):
        return "shuffled", (
            "a shuffled pass may be worth its cost, which --qrels would show, while a reversed one "
            "leaves the ends where they are"
        )
    if favours == "first":
        return "none", (
            "no extra pass is worth its cost unless --qrels shows it, since a reversed one evens "
            "that out and gives up the first stage's order with it"
        )
    if favours == "last":
        return "reverse", (
            "a reversed pass is worth its cost, since the first stage's best stand where the model "
            "looks least"
        )
    if tau >= _CONSISTENT:
        return "none", (
            f"no extra pass is worth its cost, since all presentations say the same (tau {tau:.2f})"
        )
    return "shuffled", (
        f"a shuffled pass is worth its cost, since presentations differ (tau {tau:.2f}) by chance, "
        "which averages out"
    )


def _by_quality(quality: Quality) -> tuple[str, str]:
    """With judgements: what a pass that is fused with the first stage's order really changes."""
    told = ", ".join(
        f"a {name} pass changes {NDCG} by {made.difference.change:+.4f} "
        f"({made.difference.low:+.4f} to {made.difference.high:+.4f})"
        for name, made in quality.fused.items()
    )
    gains = {
        name: made.difference.change
        for name, made in quality.fused.items()
        if made.difference.low > 0
    }
    if not gains:
        return "none", f"no extra pass is worth its cost, since {told}"
    best = max(gains, key=gains.__getitem__)
    return {"reversed": "reverse"}.get(best, best), f"a {best} pass is worth its cost, since {told}"
