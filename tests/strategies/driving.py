"""Drives strategies without an event loop, with judges that are perfect, noisy or useless."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from hypothesis import strategies as st

from batchrank.answers import Reading, permutation
from batchrank.strategies.base import Round, Strategy, drive
from batchrank.values import Permutation, Ranking, Status, Window

Judge = Callable[[Window], Permutation]


def docids(count: int) -> Ranking:
    """`count` docids in first-stage order."""
    return tuple(f"d{number}" for number in range(count))


def shuffled(count: int, seed: int) -> Ranking:
    """The same docids, best first, as a judge sees them."""
    order = list(docids(count))
    Random(seed).shuffle(order)
    return tuple(order)


def perfect(truth: Ranking) -> Judge:
    """Names exactly as many as the window wants, by their order in `truth`."""
    place = {docid: rank for rank, docid in enumerate(truth)}

    def judge(window: Window) -> Permutation:
        best = sorted(range(1, len(window.shown) + 1), key=lambda i: place[window.shown[i - 1]])
        return permutation(window, Reading(tuple(best[: window.wants]), Status.OK))

    return judge


def noisy(seed: int) -> Judge:
    """Names any documents in any order, sometimes fewer or more than wanted, sometimes none."""
    random = Random(seed)

    def judge(window: Window) -> Permutation:
        named = random.sample(range(1, len(window.shown) + 1), random.randint(0, len(window.shown)))
        return permutation(window, Reading(tuple(named), Status.REPAIRED))

    return judge


def useless(window: Window) -> Permutation:
    """Brings nothing that can be used."""
    return permutation(window, Reading((), Status.FALLBACK, ("empty",)))


def drove(strategy: Strategy, first_stage: Ranking, judge: Judge) -> tuple[Ranking, list[Round]]:
    """The final ranking and every round that was asked."""
    rounds: list[Round] = []

    async def ask(windows: Round, number: int) -> Sequence[Permutation]:
        assert number == len(rounds)
        rounds.append(windows)
        return [judge(window) for window in windows]

    try:
        drive(strategy(first_stage), ask).send(None)
    except StopIteration as end:
        ranking: Ranking = end.value
        return ranking, rounds
    raise AssertionError("drive waited for something")


def counts(window_size: int) -> st.SearchStrategy[int]:
    """Numbers of candidates: those where windows begin and end, and any other."""
    edges = (0, 1, 2, 23, 401, 1000, window_size - 1, window_size, window_size + 1)
    return st.sampled_from(edges) | st.integers(0, 300)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int]:
    """A legal window size, and a number of candidates."""
    window_size = draw(st.sampled_from((2, 3, 4, 5, 20, 100)) | st.integers(2, 40))
    return window_size, draw(counts(window_size))
