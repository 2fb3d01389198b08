"""Readings of numbers: first tokens, yes and no, likelihoods, relevances, grades."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.calls import Answer, ChatPrompt, Form, LikelihoodPrompt, Prompt, RerankPrompt
from batchrank.prompts.loading import load_template
from batchrank.prompts.render import Cut, QueryTexts
from batchrank.prompts.template import NO_TEMPLATE
from batchrank.prompts.tokens import TokenCounter
from batchrank.readings.base import Means
from batchrank.readings.named import POINTWISE, READERS
from batchrank.values import Document, Query, Request, Status, Window

DOCIDS = ("a", "b", "c", "d")
ONE = Window(("a",), ("a",), 1)
FOUR = Window(DOCIDS, ("d", "c", "b", "a"), 2)
TEXTS = QueryTexts(
    Request(Query("q", "which fruit"), tuple(Document(d, f"text of {d}") for d in DOCIDS)),
    4,
    Cut(TokenCounter(), 50),
)


def means(answer: str, form: Form = Form.TEXT) -> Means:
    """The English template of a reading, and 20 alternatives of a token."""
    kind = READERS[answer].kind
    template = load_template(f"{kind}-en", kind) if kind else NO_TEMPLATE
    return Means(template, form, top_logprobs=20)


def scored(*pairs: tuple[str, float], text: str = "", finish: str = "stop") -> Answer:
    """An answer with numbers."""
    return Answer(text, finish=finish, scored=pairs)


def prompt(answer: str, window: Window) -> Prompt:
    """What a reading asks."""
    return READERS[answer].prompt(TEXTS, window, means(answer))


class TestFirstToken:
    """One letter a document, the likelier the better."""

    def test_one_token_is_asked_for_and_its_alternatives(self) -> None:
        asked = prompt("logprobs", FOUR)

        assert isinstance(asked, ChatPrompt)
        assert (asked.max_tokens, asked.top_logprobs, asked.form) == (1, 20, Form.TEXT)
        assert "[A] text of d\n[B] text of c\n[C] text of b\n[D] text of a\n" in asked.text

    def test_the_order_is_that_of_the_log_probabilities(self) -> None:
        read = READERS["logprobs"].read(
            FOUR, scored(("The", -0.1), (" C", -0.5), ("A", -1.5), ("[D", -2.0), ("B", -3.0))
        )

        assert (read.order, read.named, read.status) == (("b", "d", "a", "c"), 4, Status.OK)
        assert read.scores == (-0.5, -1.5, -2.0, -3.0)

    def test_documents_that_do_not_come_back_keep_the_prior_order_below(self) -> None:
        read = READERS["logprobs"].read(FOUR, scored(("A", -0.5), ("B", -0.9)))

        assert (read.order, read.named, read.status) == (("d", "c", "a", "b"), 2, Status.OK)

    def test_fewer_than_wanted_is_repaired_and_none_is_unusable(self) -> None:
        few = READERS["logprobs"].read(FOUR, scored(("D", -0.5), ("E", -0.6), ("a", -0.7)))
        none = READERS["logprobs"].read(FOUR, Answer("A"))

        assert (few.order, few.status, few.notes) == (DOCIDS, Status.REPAIRED, ("missing",))
        assert (none.order, none.named, none.status) == (DOCIDS, 0, Status.FALLBACK)

    def test_of_two_spellings_of_a_letter_the_likelier_counts(self) -> None:
        read = READERS["logprobs"].read(FOUR, scored(("B", -0.5), (" A", -2.0), ("A", -0.4)))

        assert read.scores == (-0.4, -0.5)


class TestYesNo:
    """Log-odds of the first token."""

    def test_the_score_is_the_log_odds(self) -> None:
        read = READERS["yesno"].read(ONE, scored(("Yes", -0.5), (" yes", -2.0), ("No", -1.5)))

        assert read.scores is not None
        assert read.scores[0] == pytest.approx(math.log(math.exp(-0.5) + math.exp(-2)) + 1.5)
        assert read.status is Status.OK

    def test_a_word_that_does_not_come_back_is_as_likely_as_the_least(self) -> None:
        yes = READERS["yesno"].read(ONE, scored(("是", -0.1), ("x", -4.0)))
        no = READERS["yesno"].read(ONE, scored(("否", -0.1), ("x", -4.0)))

        assert yes.scores == pytest.approx((3.9,))
        assert no.scores == pytest.approx((-3.9,))

    def test_neither_word_is_unusable(self) -> None:
        for answer in (scored(("maybe", -0.1)), Answer("yes")):
            read = READERS["yesno"].read(ONE, answer)
            assert (read.named, read.status, read.scores) == (0, Status.FALLBACK, None)


class TestLikelihood:
    """The summed log-probability of the query behind the document."""

    def test_the_query_is_the_target_and_not_in_the_text(self) -> None:
        asked = prompt("likelihood", ONE)

        assert isinstance(asked, LikelihoodPrompt)
        assert asked.target == "which fruit"
        assert "text of a" in asked.text
        assert "which fruit" not in asked.text

    def test_the_score_is_the_sum(self) -> None:
        read = READERS["likelihood"].read(ONE, scored((" which", -2.5), (" fruit", -4.0)))

        assert (read.scores, read.status) == ((-6.5,), Status.OK)

    def test_a_part_of_the_query_is_no_score(self) -> None:
        for answer in (scored((" which", -2.5), finish="length"), scored()):
            read = READERS["likelihood"].read(ONE, answer)
            assert (read.named, read.status) == (0, Status.FALLBACK)


class TestRerank:
    """Relevances of a reranking model."""

    def test_all_documents_of_a_window_go_in_one_request(self) -> None:
        texts = ("text of d", "text of c", "text of b", "text of a")

        assert prompt("rerank", FOUR) == RerankPrompt("which fruit", texts)

    def test_the_order_is_that_of_the_scores(self) -> None:
        read = READERS["rerank"].read(
            FOUR, scored(("2", 0.9), ("0", 0.5), ("3", 0.1), ("1", -7.0), ("2", 0.0), ("9", 1.0))
        )

        assert (read.order, read.scores) == (("b", "d", "a", "c"), (0.9, 0.5, 0.1, -7.0))
        assert read.status is Status.OK

    def test_a_missing_document_is_noted(self) -> None:
        read = READERS["rerank"].read(FOUR, scored(("2", 0.9), ("0", 0.5)))

        assert (read.order, read.named) == (("b", "d", "a", "c"), 2)
        assert (read.status, read.notes) == (Status.REPAIRED, ("missing",))


class TestGraded:
    """A grade from 0 to 10, never guessed."""

    @pytest.mark.parametrize(
        ("text", "grade"),
        [
            ("7", 7),
            (" 10\n", 10),
            ("0", 0),
            ("[3]", 3),
            ('{"ranking": [8]}', 8),
            ("<think>9</think>4", 4),
        ],
    )
    def test_a_strict_answer(self, text: str, grade: float) -> None:
        read = READERS["graded"].read(ONE, Answer(text))

        assert (read.scores, read.status) == ((grade,), Status.OK)

    @pytest.mark.parametrize(
        ("text", "grade"),
        [("Grade: 7", 7), ("I give it 6 out of 10.", 6), ("**8/10**", 8), ("6.5", 6.5)],
    )
    def test_a_repaired_answer(self, text: str, grade: float) -> None:
        read = READERS["graded"].read(ONE, Answer(text))

        assert (read.scores, read.status, read.notes) == ((grade,), Status.REPAIRED, ("format",))

    @pytest.mark.parametrize("text", ["", "good", "between 4 and 6", "11", "42", "2019 was a 7"])
    def test_an_unusable_answer(self, text: str) -> None:
        read = READERS["graded"].read(ONE, Answer(text))

        assert (read.named, read.status, read.scores) == (0, Status.FALLBACK, None)

    def test_a_constraint_that_brought_nothing_is_dropped_once(self) -> None:
        reader, constrained = READERS["graded"], means("graded", Form.GRAMMAR)
        first = reader.prompt(TEXTS, ONE, constrained)
        assert isinstance(first, ChatPrompt)
        assert (first.lowest, first.documents, first.wanted) == (0, 10, 1)

        second = reader.second(TEXTS, ONE, constrained, first, Answer(""))

        assert isinstance(second, ChatPrompt)
        assert second.form is Form.TEXT
        assert reader.second(TEXTS, ONE, constrained, second, Answer("")) is None


class TestExplain:
    """What is said before the last line never counts."""

    def test_the_last_line_is_read(self) -> None:
        answer = Answer("[4] is about fruit, [1] is not.\n\n**Ranking:** [4] > [3]")

        read = READERS["explain"].read(FOUR, answer)

        assert (read.order[:2], read.named) == (("a", "b"), 2)

    def test_an_explanation_without_a_last_line_is_unusable(self) -> None:
        for finish, note in (("stop", "no-ranking"), ("length", "cut")):
            read = READERS["explain"].read(FOUR, Answer("[4] is best, then [3].", finish=finish))
            assert (read.order, read.status, read.notes) == (DOCIDS, Status.FALLBACK, (note,))

    def test_an_explanation_that_was_cut_gets_more_room_once(self) -> None:
        reader = READERS["explain"]
        first = prompt("explain", FOUR)
        assert isinstance(first, ChatPrompt)

        second = reader.second(TEXTS, FOUR, means("explain"), first, Answer("…", finish="length"))

        assert isinstance(second, ChatPrompt)
        assert second.max_tokens > first.max_tokens
        assert reader.second(TEXTS, FOUR, means("explain"), first, Answer("…")) is None


ANYTHING = st.builds(
    Answer,
    st.text(max_size=40) | st.text("0123456789[]>,:/ Ranking\n", max_size=40),
    finish=st.sampled_from(["stop", "length"]),
    scored=st.lists(
        st.tuples(
            st.text(max_size=3) | st.sampled_from(["A", "D", "yes", "No"]),
            st.floats(-50, 0, allow_nan=False),
        ),
        max_size=6,
    ).map(tuple),
)


@pytest.mark.parametrize("name", [name for name in READERS if name != "rerank"])
@given(answer=ANYTHING)
def test_whatever_comes_back_is_a_permutation(name: str, answer: Answer) -> None:
    window = ONE if name in POINTWISE else FOUR

    read = READERS[name].read(window, answer)

    assert sorted(read.order) == sorted(window.prior)
    if read.status is Status.FALLBACK:
        assert (read.order, read.named) == (window.prior, 0)
    if read.scores is not None:
        assert len(read.scores) == read.named
        assert list(read.scores) == sorted(read.scores, reverse=True)
