"""Counting and cutting by an estimate: prefixes, limits and monotony for every script."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from batchrank.prompts.tokens import TokenCounter, estimate, odd_bytes

RATIOS = st.sampled_from((0.5, 0.87, 1.0, 1.31, 3.0))
TEXTS = st.text(max_size=400) | st.text("ab ,.9\n苹果🍎я", max_size=400)


@settings(deadline=None)
@given(TEXTS, st.integers(0, 120), RATIOS)
@example("🍎" * 10, 10, 1.0)
def test_a_cut_is_a_prefix_within_its_limit(text: str, tokens: int, ratio: float) -> None:
    counter = TokenCounter(ratio)

    cut = counter.cut(text, tokens)

    assert text.startswith(cut)
    assert cut == counter.cut(text, tokens, odd_bytes(text))
    assert counter.count(cut) <= tokens
    if counter.count(text) <= tokens:
        assert cut == text


@settings(deadline=None)
@given(TEXTS, st.integers(0, 100), st.integers(0, 20), RATIOS)
def test_more_tokens_never_show_less(text: str, tokens: int, more: int, ratio: float) -> None:
    counter = TokenCounter(ratio)

    assert counter.cut(text, tokens + more).startswith(counter.cut(text, tokens))


@settings(deadline=None)
@given(TEXTS, TEXTS, RATIOS)
def test_an_estimate_is_additive_and_never_negative(one: str, other: str, ratio: float) -> None:
    assert estimate(one + other) == pytest.approx(estimate(one) + estimate(other))
    assert TokenCounter(ratio).count(one) >= 0
    assert (TokenCounter(ratio).count(one) == 0) == (one == "")


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "苹果" * 50_000, "🍎" * 100_000, "0" * 100_000, "слово" * 20_000]
)
def test_a_word_without_an_end_is_cut_as_far_as_it_fits(text: str) -> None:
    counter = TokenCounter()

    cut = counter.cut(text, 200)

    assert text.startswith(cut)
    assert 198 < estimate(cut) <= 200


def test_a_cut_ends_at_a_blank_if_one_is_near() -> None:
    text = "several words of english prose " * 40

    cut = TokenCounter().cut(text, 50)

    assert text[len(cut)] == " "
    assert not cut.endswith(" ")


def test_a_character_of_chinese_is_about_one_token() -> None:
    assert TokenCounter().count("排序搜索结果") == 6


def test_the_ratio_of_a_model_scales_both_ways() -> None:
    text = "word " * 200

    assert TokenCounter(2.0).count(text) == pytest.approx(2 * estimate(text), abs=1)
    assert len(TokenCounter(2.0).cut(text, 60)) < len(TokenCounter(1.0).cut(text, 60))


def test_a_lone_surrogate_is_counted() -> None:
    assert TokenCounter().count("\ud800") == 1
    assert TokenCounter().cut("\ud800" * 100, 10) == "\ud800" * 17
