"""What incremental rankings promise, for every strategy that allows them and every window size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.spec.jobspec import JobSpec
from batchrank.strategies.base import Round
from batchrank.strategies.incremental import delta
from batchrank.values import Permutation, Ranking, Window
from tests.strategies.driving import docids, drove, noisy, perfect, shuffled, useless

PASSES = ("forward", "reverse", "shuffle:3", "forward,reverse", "forward,shuffle:1")


@dataclass(frozen=True)
class Night:
    """A job, tonight's list in first-stage order, what is new in it, and how good each is."""

    spec: JobSpec
    tonight: Ranking
    new: frozenset[str]
    truth: Ranking

    @property
    def known(self) -> Ranking:
        """What was there before, best first."""
        return tuple(docid for docid in self.truth if docid not in self.new)


@st.composite
def specs(draw: st.DrawFn) -> JobSpec:
    """Any job that allows incremental nights, with windows of 2 to 25."""
    window = draw(st.integers(2, 25))
    strategy = draw(
        st.sampled_from(("segmented", "sliding", "single", "topdown", "tournament", "setwise"))
    )
    own: dict[str, object] = {}
    if strategy == "sliding":
        own["stride"] = draw(st.integers(1, window - 1))
    elif strategy == "setwise":
        own["method"] = draw(st.sampled_from(("heap", "insertion")))
    elif strategy == "segmented":
        own["merge_passes"] = draw(st.sampled_from((*PASSES, "adaptive:2")))
    if strategy not in ("sliding", "single"):
        own["winners"] = draw(st.none() | st.integers(1, max(1, window // 2)))
    stage = {"strategy": strategy, "window_size": window, **own}
    stage["passes"] = draw(st.sampled_from(PASSES))
    given: dict[str, object] = {"incremental": True, "yes": True}
    given["top_k"] = draw(st.none() | st.integers(1, 30))
    if draw(st.booleans()):
        return JobSpec.model_validate(given | stage)
    return JobSpec.model_validate(given | {"stage": [{"window_size": 20}, stage]})


@st.composite
def nights(draw: st.DrawFn) -> Night:
    """Any job, and a list of which some documents are new or edited and others went."""
    count = draw(st.integers(2, 120))
    seed = draw(st.integers(0, 9999))
    tonight = docids(count)
    # To the strategy an edited document is a new one, and one that went was never there.
    new = frozenset(Random(seed).sample(tonight, draw(st.integers(0, count // 2))))
    return Night(draw(specs()), tonight, new, shuffled(count, seed))


def promised(spec: JobSpec, rounds: Sequence[Round]) -> int:
    """How many of the best a full ranking has right, as docs/strategies.md has it."""
    stage = spec.stages[-1]
    best = spec.top_k or 10
    match stage.strategy:
        case "sliding":
            return stage.window_size - stage.stride
        case "topdown":
            return stage.winners or stage.window_size // 2
        case "setwise":
            return stage.winners or best
    of_last = [[w.wants for w in r if w.stage == len(spec.stages) - 1] for r in rounds]
    return min([best, *(max(wants) for wants in of_last if wants)])


@settings(deadline=None, max_examples=150)
@given(nights(), st.integers(0, 9))
def test_with_a_perfect_judge_the_best_are_those_of_a_full_ranking(night: Night, seed: int) -> None:
    merging = night.spec.make_merging(25)
    # Of the earlier order only the best were right: lower down it was never looked at.
    best, rest = night.known[: merging.top], list(night.known[merging.top :])
    Random(seed).shuffle(rest)

    ranking, _ = drove(delta(merging, (*best, *rest)), night.tonight, perfect(night.truth))

    assert sorted(ranking) == sorted(night.tonight)
    assert ranking[: merging.top] == night.truth[: merging.top]
    full, rounds = drove(night.spec.make_strategy(25), night.tonight, perfect(night.truth))
    top = promised(night.spec, rounds)
    assert top <= merging.top
    if night.spec.stages[-1].strategy != "single" and night.spec.stage is None:
        assert ranking[:top] == full[:top]


@settings(deadline=None, max_examples=100)
@given(nights())
def test_with_a_perfect_judge_an_earlier_order_that_is_right_stays(night: Night) -> None:
    ranking, _ = drove(
        delta(night.spec.make_merging(25), night.known), night.tonight, perfect(night.truth)
    )

    assert tuple(docid for docid in ranking if docid not in night.new) == night.known


@settings(deadline=None, max_examples=100)
@given(nights(), st.integers(0, 99), st.floats(0, 1))
def test_a_fallback_puts_nothing_new_above_what_was_there(
    night: Night, seed: int, share: float
) -> None:
    random = Random(seed)
    judge = perfect(night.truth)
    heard: set[str] = set()

    def answer(window: Window) -> Permutation:
        if random.random() < share:
            return useless(window)
        heard.update(window.shown)
        return judge(window)

    merging = night.spec.make_merging(25)
    ranking, _ = drove(delta(merging, night.known), night.tonight, answer)

    place = {docid: rank for rank, docid in enumerate(ranking)}
    worth = {docid: -rank for rank, docid in enumerate(night.truth)}
    lowest = max((place[docid] for docid in night.known), default=-1)
    for docid in night.new:
        if docid not in heard:
            assert place[docid] > lowest
        elif place[docid] < merging.top:
            below = (other for other in night.known if place[other] > place[docid])
            assert all(worth[docid] > worth[other] for other in below)


@settings(deadline=None, max_examples=100)
@given(nights(), st.integers(0, 99))
def test_any_answers_give_a_permutation_from_legal_windows(night: Night, seed: int) -> None:
    merging = night.spec.make_merging(25)

    ranking, rounds = drove(delta(merging, night.known), night.tonight, noisy(seed))

    assert sorted(ranking) == sorted(night.tonight)
    for window in (window for windows in rounds for window in windows):
        assert 2 <= len(window.shown) <= merging.window_size
        assert 1 <= window.wants <= len(window.shown)
        assert sorted(window.prior) == sorted(window.shown)
        assert window.stage == len(night.spec.stages) - 1
