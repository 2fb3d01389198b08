"""Fitting windows to a context: shorter documents first, then fewer, never over."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.calls import Form
from batchrank.prompts.loading import load_template
from batchrank.prompts.render import Cut, QueryTexts, text_of
from batchrank.prompts.tokens import TokenCounter
from batchrank.readings.base import Means
from batchrank.readings.named import READERS
from batchrank.serving.fit import MIN_DOC_TOKENS, MIN_WINDOW, Fit, fit_context, tokens_needed
from batchrank.values import Document, Query, Request, Window

WANTED = Fit(20, 200)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (100_000, Fit(20, 200)),
        (tokens_needed(Fit(20, 200), 80), Fit(20, 200)),
        (tokens_needed(Fit(20, 200), 80) - 1, Fit(20, 199)),
        (tokens_needed(Fit(20, 100), 80), Fit(20, 100)),
        (tokens_needed(Fit(20, 80), 80), Fit(20, 80)),
        (tokens_needed(Fit(20, 80), 80) - 1, Fit(19, 84)),
        (tokens_needed(Fit(2, 80), 80), Fit(2, 80)),
        (tokens_needed(Fit(2, 80), 80) - 1, None),
        (0, None),
    ],
)
def test_documents_are_shortened_to_their_floor_and_then_left_out(
    context: int, expected: Fit | None
) -> None:
    assert fit_context(WANTED, 80, context) == expected


def test_documents_that_are_wanted_shorter_than_the_floor_stay_so() -> None:
    assert fit_context(Fit(20, 30), 80, 100_000) == Fit(20, 30)
    assert fit_context(Fit(20, 30), 80, tokens_needed(Fit(5, 30), 80)) == Fit(5, 30)


FITS = st.builds(Fit, st.integers(MIN_WINDOW, 200), st.integers(1, 1000))


@settings(deadline=None)
@given(FITS, st.integers(0, 5000), st.integers(0, 60_000))
def test_a_fit_holds_within_what_was_wanted_and_wastes_nothing(
    wanted: Fit, answer: int, context: int
) -> None:
    fit = fit_context(wanted, answer, context)

    floor = min(wanted.max_doc_tokens, MIN_DOC_TOKENS)
    if fit is None:
        assert tokens_needed(Fit(MIN_WINDOW, floor), answer) > context
        return
    assert tokens_needed(fit, answer) <= context
    assert MIN_WINDOW <= fit.window_size <= wanted.window_size
    assert floor <= fit.max_doc_tokens <= wanted.max_doc_tokens
    if fit.max_doc_tokens < wanted.max_doc_tokens:
        assert tokens_needed(Fit(fit.window_size, fit.max_doc_tokens + 1), answer) > context
    if fit.window_size < wanted.window_size:
        assert tokens_needed(Fit(fit.window_size + 1, floor), answer) > context


@pytest.mark.parametrize("answer", [name for name, reader in READERS.items() if reader.kind])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("piece", ["word ", "苹果", "🍎", "x", "7,", "слово "])
@pytest.mark.parametrize("fit", [Fit(2, 80), Fit(20, 200), Fit(100, 80)])
def test_no_prompt_of_a_built_in_template_needs_more_than_was_reckoned(
    answer: str, language: str, piece: str, fit: Fit
) -> None:
    reader = READERS[answer]
    assert reader.kind is not None
    size = min(fit.window_size, reader.most or fit.window_size)
    counter = TokenCounter()
    docids = tuple(f"d{number}" for number in range(size))
    candidates = tuple(Document(docid, piece * 2000) for docid in docids)
    texts = QueryTexts(
        Request(Query("q", piece * 2000), candidates),
        size,
        Cut(counter, fit.max_doc_tokens),
    )
    window = Window(docids, docids, len(docids))

    template = load_template(f"{reader.kind}-{language}", reader.kind)
    prompt = reader.prompt(texts, window, Means(template, Form.TEXT))

    assert counter.count(text_of(prompt)) <= tokens_needed(fit, 0)
