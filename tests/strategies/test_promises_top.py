"""What strategies that find the best few promise with a perfect judge, and do with any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.strategies.base import Round, Strategy
from batchrank.strategies.orders import forward, shuffle
from batchrank.strategies.pairwise import pairwise
from batchrank.strategies.segmented import segmented
from batchrank.strategies.setwise import setwise
from batchrank.strategies.single import single
from batchrank.strategies.topdown import topdown
from batchrank.strategies.tournament import tournament
from tests.strategies.driving import counts, docids, drove, noisy, perfect, shuffled, useless

Make = Callable[[int, int], Strategy]
"""From a window size and how many of the best are looked for."""

MAKES: dict[str, Make] = {
    "segmented": lambda window, k: segmented(window, None, k, [forward]),
    "segmented, shuffled": lambda window, k: segmented(window, None, k, [shuffle(1), shuffle(2)]),
    "segmented, adaptive": lambda window, k: segmented(window, 1, k, [forward, shuffle(1)], k),
    "single": lambda window, k: single(None, k),
    "topdown": topdown,
    "tournament": lambda window, k: tournament(window, 2, None, k, seed=7),
    "tournament of halves": lambda window, k: tournament(window, 3, window // 2, k, seed=7),
    "heap": lambda window, k: setwise(window, k, "heap"),
    "insertion": lambda window, k: setwise(window, k, "insertion"),
    "pairwise": lambda window, k: pairwise(k),
}
BY_GROUPS = ("segmented", "tournament")
"""These promise no more than the least that a group sends on."""


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, int, int, int]:
    """A strategy's name, window size, how many are looked for, candidates; work is bounded."""
    name = draw(st.sampled_from(sorted(MAKES)))
    window = draw(st.sampled_from((3, 4, 5, 20)) | st.integers(2, 40))
    k = draw(st.integers(1, min(window, 12)))
    count = draw(counts(window))
    if name == "pairwise" or window == 2:
        count = min(count, 60)
    return name, window, k, count


def promised(name: str, k: int, rounds: Sequence[Round]) -> int:
    """How many of the best must stand first, in order."""
    if name.startswith(BY_GROUPS):
        return min([k, *(max(window.wants for window in windows) for windows in rounds)])
    return k


@settings(deadline=None, max_examples=150)
@given(cases(), st.integers(0, 99))
def test_a_perfect_judge_gets_the_best_right(case: tuple[str, int, int, int], seed: int) -> None:
    name, window, k, count = case
    truth = shuffled(count, seed)

    ranking, rounds = drove(MAKES[name](window, k), docids(count), perfect(truth))

    best = promised(name, k, rounds)
    assert best >= 1
    assert ranking[:best] == truth[:best]
    assert sorted(ranking) == sorted(truth)


@pytest.mark.parametrize("name", sorted(MAKES))
@pytest.mark.parametrize("count", [0, 1, 2, 19, 20, 21, 401, 1000])
def test_the_best_are_right_at_the_edges(name: str, count: int) -> None:
    k = 2 if name == "pairwise" else 10
    truth = shuffled(count, 3)

    ranking, rounds = drove(MAKES[name](20, k), docids(count), perfect(truth))

    best = promised(name, k, rounds)
    assert ranking[:best] == truth[:best]
    assert sorted(ranking) == sorted(truth)


@settings(deadline=None, max_examples=100)
@given(cases())
def test_unusable_answers_leave_the_first_stage(case: tuple[str, int, int, int]) -> None:
    name, window, k, count = case

    ranking, _ = drove(MAKES[name](window, k), docids(count), useless)

    assert ranking == docids(count)


@settings(deadline=None, max_examples=100)
@given(cases(), st.integers(0, 99))
def test_any_answers_give_a_permutation_from_legal_windows(
    case: tuple[str, int, int, int], seed: int
) -> None:
    name, window_size, k, count = case

    ranking, rounds = drove(MAKES[name](window_size, k), docids(count), noisy(seed))

    assert sorted(ranking) == sorted(docids(count))
    for windows in rounds:
        assert windows
        for window in windows:
            assert sorted(window.shown) == sorted(window.prior)
            assert len(set(window.prior)) == len(window.prior)
            assert 1 <= window.wants <= len(window.prior)
            assert len(window.prior) <= window_size or name in ("single", "pairwise")
            assert len(window.prior) >= 2 or name.startswith(BY_GROUPS)


@pytest.mark.parametrize("name", sorted(MAKES))
def test_a_replay_asks_the_same(name: str) -> None:
    first, again = (drove(MAKES[name](5, 2), docids(43), noisy(1)) for _ in range(2))

    assert first == again
