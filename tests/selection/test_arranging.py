"""A model's order, mixed with the first stage, freed of duplicates, made diverse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.selection.diversity import diversified
from batchrank.selection.duplicates import demoted, shingles
from batchrank.selection.interpolation import by_rank, by_score, interpolated
from batchrank.selection.selection import Selection
from batchrank.selection.similarity import by_embeddings, by_terms
from batchrank.selection.words import words
from batchrank.values import Document

FLEA = "a flea lives two or three months on a cat and no longer than that"
TEXTS = st.lists(st.sampled_from(["cat", "dog", "flea", "lives", "。", "蚤"]), max_size=8)
SCORES = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def documents(draw: st.DrawFn) -> tuple[Document, ...]:
    """Up to 12 candidates of few words, so that many are alike."""
    return tuple(
        Document(f"d{place}", " ".join(draw(TEXTS)), score=draw(SCORES))
        for place in range(draw(st.integers(1, 12)))
    )


@st.composite
def orders(draw: st.DrawFn) -> tuple[tuple[Document, ...], tuple[int, ...]]:
    """Candidates, and an order of the first of them."""
    candidates = draw(documents())
    count = draw(st.integers(1, len(candidates)))
    return candidates, tuple(draw(st.permutations(range(count))))


SELECTIONS = st.builds(
    Selection,
    alpha=st.floats(0, 1),
    normalise=st.sampled_from(["rank", "min-max"]),
    near_duplicates=st.none() | st.floats(0.1, 1),
    mmr=st.none() | st.floats(0, 1),
)


@given(orders(), SELECTIONS)
def test_the_result_is_a_permutation_and_the_same_each_time(
    given_order: tuple[tuple[Document, ...], tuple[int, ...]], selection: Selection
) -> None:
    candidates, order = given_order
    arranged = selection.arranged(order, candidates)
    assert sorted(arranged) == sorted(order)
    assert selection.arranged(order, candidates) == arranged


@given(orders())
def test_without_settings_the_order_stands(
    given_order: tuple[tuple[Document, ...], tuple[int, ...]],
) -> None:
    candidates, order = given_order
    assert Selection().arranged(order, candidates) == order
    scores = [document.score for document in candidates[: len(order)]]
    assert interpolated(order, scores, 1, "min-max") == order
    assert interpolated(order, scores, 0, "rank") == tuple(sorted(order))
    similarity = by_terms([document.text for document in candidates])
    assert diversified(order, similarity, 1) == list(order)


@given(st.lists(SCORES, min_size=1, max_size=12))
def test_scores_become_numbers_from_0_to_1(scores: list[float | None]) -> None:
    assert all(0 <= value <= 1 for value in by_score(scores))


class TestInterpolation:
    """alpha * model + (1 - alpha) * first stage."""

    def test_half_of_each_is_the_sum_of_ranks(self) -> None:
        # Sums of ranks 3, 1, 4, 4 of the places 0 to 3; ties as the model has them.
        assert interpolated((1, 3, 2, 0), (None,) * 4, 0.5, "rank") == (1, 0, 3, 2)

    def test_scores_far_apart_weigh_more_than_ranks(self) -> None:
        scores = (100.0, 1.0, 0.0)
        assert interpolated((2, 1, 0), scores, 0.6, "rank") == (2, 1, 0)
        assert interpolated((1, 0, 2), scores, 0.6, "min-max") == (0, 1, 2)

    def test_min_max_takes_the_rank_where_there_is_no_score(self) -> None:
        assert by_score([10.0, None, 9.0, 0.0, 0.0]) == [1.0, 0.75, 0.9, 0.0, 0.0]

    @pytest.mark.parametrize(
        "scores", [(0.1, 0.2, 0.3), (1.0, 1.0, 1.0), (None,) * 3, (5e-324, 0.0, 0.0)]
    )
    def test_scores_that_tell_nothing_are_not_used(self, scores: tuple[float | None, ...]) -> None:
        assert by_score(scores) == by_rank(3) == [1.0, 0.5, 0.0]

    def test_the_largest_numbers_are_no_trouble(self) -> None:
        assert by_score([1.7e308, 0.0, -1.7e308]) == [1.0, 0.5, 0.0]


class TestDuplicates:
    """Word shingles and their Jaccard similarity."""

    def test_a_copy_goes_below_the_better_one(self) -> None:
        texts = [FLEA, "something else about cats", f"{FLEA.upper()}!"]
        assert demoted((2, 1, 0), texts, 0.9) == ([2, 1], [0])

    def test_only_what_is_similar_enough_goes(self) -> None:
        texts = [FLEA, f"{FLEA} either"]
        one, two = map(shingles, texts)
        similarity = len(one & two) / len(one | two)
        assert demoted((0, 1), texts, similarity)[1] == [1]
        assert demoted((0, 1), texts, similarity + 0.01)[1] == []

    def test_what_is_like_a_duplicate_alone_stays(self) -> None:
        texts = ["a b c d", "b c d e", "c d e f"]
        assert demoted((0, 1, 2), texts, 0.3) == ([0, 2], [1])

    def test_duplicates_keep_their_order(self) -> None:
        assert demoted((3, 0, 2, 1), ["a", "b", "b", "a"], 1.0) == ([3, 2], [0, 1])

    def test_texts_without_words_are_like_no_other(self) -> None:
        assert demoted((0, 1), ["", "。"], 0.1) == ([0, 1], [])

    def test_chinese_is_compared_by_characters(self) -> None:
        assert words("跳蚤 fleas 活") == ["跳", "蚤", "fleas", "活"]
        texts = ["跳蚤在猫身上能活两三个月", "跳蚤在猫身上能活两三个月。", "猫不喜欢水"]
        assert demoted((0, 1, 2), texts, 0.9) == ([0, 2], [1])


class TestDiversity:
    """Maximal marginal relevance."""

    def test_what_says_the_same_comes_later(self) -> None:
        texts = ["flea life", "flea life", "cat food", "dog walk"]
        assert diversified((0, 1, 2, 3), by_terms(texts), 0.5) == [0, 2, 3, 1]

    def test_terms_are_alike_by_their_cosine(self) -> None:
        found = by_terms(["flea flea cat", "cat", "", "Cat dog"])(0, [1, 2, 3])
        assert found == pytest.approx({1: 1 / 5**0.5, 2: 0.0, 3: 1 / 10**0.5})

    def test_vectors_are_alike_by_their_cosine_however_long(self) -> None:
        found = by_embeddings([(3e200, 0.0), (1e-200, 1e-200), (-2.0, 0.0), (0.0, 0.0)])(
            0, [1, 2, 3]
        )
        assert found == pytest.approx({1: 0.5**0.5, 2: -1.0, 3: 0.0})

    def test_embeddings_count_where_all_have_one_of_the_same_length(self) -> None:
        texts = ["flea life", "flea life", "cat food"]
        vectors = [(1.0, 0.0), (0.0, 1.0), (1.0, 0.1)]
        selection = Selection(mmr=0.5)

        def arranged(*embeddings: tuple[float, ...]) -> tuple[int, ...]:
            candidates = [
                Document(f"d{place}", text, embedding=embedding)
                for place, (text, embedding) in enumerate(zip(texts, embeddings, strict=True))
            ]
            return selection.arranged((0, 1, 2), candidates)

        assert arranged(*vectors) == (0, 1, 2)
        assert arranged(*vectors[:2], ()) == arranged(*vectors[:2], (1.0,)) == (0, 2, 1)

    def test_duplicates_stay_below_what_is_made_diverse(self) -> None:
        texts = ["flea life span", "flea life span", "flea life", "cat food"]
        candidates = [Document(f"d{place}", text) for place, text in enumerate(texts)]
        selection = Selection(near_duplicates=0.9, mmr=0.5)
        assert selection.arranged((0, 1, 2, 3), candidates) == (0, 3, 2, 1)
