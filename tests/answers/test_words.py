"""Answers in words: what is read as a ranking, and what is left alone."""

from __future__ import annotations

import pytest

from batchrank.values import Status
from tests.answers.reading import reading

_RANKS_312 = {
    "arrows": "3 > 1 > 2",
    "brackets without arrows": "[3] [1] [2]",
    "one a line": "3\n1\n2\n",
    "bullets": "- [3]\n- [1]\n- [2]",
    "emphasis": "**[3]** > **[1]** > **[2]**",
    "double arrows": "[3] >> [1] > [2]",
    "drawn arrows": "[3] → [1] → [2]",
    "ties": "[3] = [1] > [2]",
    "the first bracket stands in the prompt": "3] > [1] > [2]",
    "a bare number in front of brackets": "3 > [1] > [2]",
    "a list in brackets": "[3, 1, 2]",
    "labels in brackets": "[Passage3, Passage1, Passage2]",
    "labelled brackets": "Passage [3] > Passage [1] > Passage [2]",
    "labels": "Document 3, Document 1, Document 2",
    "one label for all": "Documents 3, 1 and 2",
    "short labels": "doc_3, doc_1, doc_2",
    "list numbers": "1. [3] > 2. [1] > 3. [2]",
    "list numbers before bare identifiers": "1. 3\n2. 1\n3. 2",
    "list numbers in parentheses": "(1) [3]\n(2) [1]\n(3) [2]",
    "ranks": "Rank 1: [3]\nRank 2: [1]\nRank 3: [2]",
    "ordinals": "First: [3]\nSecond: [1]\nThird: [2]",
    "a reason a line": "1. [3] - days and weeks\n2. [1] - 2 sentences\n3. [2] - an advert",
    "lines with titles, not in the prompt's order": "3. Life cycle\n1. Adverts\n2. Dogs",
    "words around it": "Sure! The order is:\n\n[3] > [1] > [2]\n\nDo ask about 1 or 2 more.",
    "in a sentence": "The most relevant is [3], followed by [1], then [2].",
    "in prose": "The ranking is as follows: [3] is best, [1] is second, [2] is last.",
    "announced bare numbers": "The order is 3, 1, 2.",
    "a count in front": "Of these 3, sorted by relevance: 3 > 1 > 2",
    "full-width": "３ > １ > ２",
    "lenticular brackets": "【3】>【1】>【2】",
    "circled": "③①②",
    "black circled": "❸ > ❶ > ❷",
    "Chinese labels and commas": "文档3、文档1、文档2",
    "Chinese numerals": "第三篇 > 第一篇 > 第二篇",
    "Chinese list marks": "一、文档3\n二、文档1\n三、文档2",
    "a Chinese count": "一共有3篇文档，排序为：3、1、2",
    "a range": "3 > 1-2",
    "a range of brackets": "[3] > [1]–[2]",
    "dashes that are no range": "3-1-2",
    "entities": "[3] &gt; [1] &gt; [2]",
    "a rising chain": "[2] < [1] < [3]",
    "an end token": "[3] > [1] > [2]<|im_end|>\n<|im_start|>user\n[1]",
    "a role header": "<|im_start|>assistant\n[3] > [1] > [2]",
    "answer tags": "Maybe [1]. <answer>[3] > [1] > [2]</answer>",
    "a box": "So \\boxed{3, 1, 2}",
    "a table": "| Rank | Passage |\n|---|---|\n| 1 | 3 |\n| 2 | 1 |\n| 3 | 2 |",
    "a table without a head": "|1|3|\n|2|1|\n|3|2|",
    "a table in the order of ranks": "| Doc | Rank |\n|---|---|\n| 1 | 2 |\n| 2 | 3 |\n| 3 | 1 |",
    "scores out of ten": "[1]: 5/10\n[2]: 1/10\n[3]: 9/10",
    "scores in prose": "I rate [1] a 5 out of 10, [2] a 1 out of 10 and [3] a 9 out of 10.",
    "scores of one decimal": "[1] 0.5\n[2] 0.1\n[3] 0.9",
    "scores in parentheses": "[1] (5), [2] (1), [3] (9)",
    "scores that can't be read": "Doc: 3, Relevance: high\nDoc: 1, Relevance: $9\nDoc: 2",
    "scores of bare numbers": "1: 5/10, 2: 1/10, 3: 9/10",
    "a table of scores": "| Doc | Score |\n|---|---|\n| 1 | 5 |\n| 2 | 1 |\n| 3 | 9 |",
    "arrows against scores": "[3] (0.5) > [1] (0.9) > [2] (0.1)",
    "a draft first": "Draft: [1] > [2] > [3]. Final ranking: [3] > [1] > [2]",
    "an echo first": "[1] fleas\n[2] cats\n[3] dogs\n\nRanking: [3] > [1] > [2]",
}


@pytest.mark.parametrize("text", _RANKS_312.values(), ids=_RANKS_312.keys())
def test_a_ranking_in_words_is_read_and_counted_as_repaired(text: str) -> None:
    found = reading(text)
    assert found.named == (3, 1, 2)
    assert found.status is Status.REPAIRED
    assert "format" in found.notes


_NO_RANKING = {
    "nothing": ("", "empty"),
    "blanks": (" \n\t", "empty"),
    "a count": ("20 passages are provided.", "no-ranking"),
    "a range in prose": ("The 20 passages should be ranked from 1 to 20.", "no-ranking"),
    "a lone range": ("1-20", "no-ranking"),
    "numbers in prose": ("Only 2 of the 3 texts answer it, see table 1.", "no-ranking"),
    "a number in prose": ("The answer is 3.", "no-ranking"),
    "a title": ("Home / News / What", "no-ranking"),
    "the prompt's template": ("[] > [] > []", "echo"),
    "the passages again": ("[1] Fleas live long.\n[2] Cats do not.\n[3] Dogs", "echo"),
    "comments in the prompt's order": ("Passage 1 is good.\nPassage 2 is a bit off.", "echo"),
    "list numbers": ("1. Fleas live long.\n2. Cats do not.", "no-ranking"),
    "a refusal": ("I'm sorry, I can't help with that.", "refusal"),
    "a refusal with a number": ("I cannot rank these, passage 2 is harmful.", "refusal"),
    "what is not relevant": ("The passages that are not relevant: [2], [3]", "no-ranking"),
    "a denial": ("Passage [1] is not relevant. Passage [2] is better.", "no-ranking"),
    "worst first in words": ("From least to most relevant: [1], [3], [2]", "no-ranking"),
    "letters": ("[B] > [A] > [C]", "no-ranking"),
    "both directions": ("[1] > [2] < [3]", "ambiguous"),
    "ranks or scores": ("1: 3, 2: 1, 3: 2", "ambiguous"),
    "only numbers of no document": ("[99] > [98]", "out-of-range"),
    "passages with percentages": ("[1] Prices rose 2.5% by May.\n[2] They fell 3.1%.", "echo"),
    "counts after identifiers": ("[1]: 2 facts on fleas\n[2]: 3 facts on cats", "echo"),
    "a table that does not say": ("| A | B |\n|---|---|\n| 2 | 3 |\n| 3 | 1 |", "ambiguous"),
    "an error page": ("<html><title>502 Bad Gateway</title></html>", "no-ranking"),
}


@pytest.mark.parametrize(("text", "reason"), _NO_RANKING.values(), ids=_NO_RANKING.keys())
def test_what_is_no_ranking_is_a_fallback_with_its_reason(text: str, reason: str) -> None:
    found = reading(text, 20)
    assert found.named == ()
    assert found.status is Status.FALLBACK
    assert found.notes == (reason,)


@pytest.mark.parametrize(
    ("text", "named", "note"),
    [
        ("[3]", (3,), "missing"),
        ("Document 3 is the most relevant.", (3,), "missing"),
        ("3, 1, 3, 2", (3, 1, 2), "repeated"),
        ("[4] > [3] > [1] > [2]", (3, 1, 2), "out-of-range"),
        ("[-1] > [3] > [1] > [2]", (3, 1, 2), "out-of-range"),
        ("[0] > [3] > [1]", (3, 1), "out-of-range"),
        ("[0] > [2] > [1]", (1, 3, 2), "zero-based"),
        ("[2] < [1] < [3]", (3, 1, 2), "reversed"),
        ("[1]: 5/10, [3]: 9/10", (3, 1), "scores"),
        ("Ranking: [3] > [1] > [2]. At first I had [1] > [2] > [3].", (3, 1, 2), "several"),
        ("[3] > [1] > … > [2]", (3, 1), "missing"),
    ],
)
def test_every_repair_is_noted(text: str, named: tuple[int, ...], note: str) -> None:
    found = reading(text)
    assert found.named == named
    assert found.status is Status.REPAIRED
    assert note in found.notes


def test_more_than_wanted_is_kept_and_noted() -> None:
    found = reading("3,1,2", wanted=2)
    assert found.named == (3, 1, 2)
    assert found.status is Status.REPAIRED
    assert found.notes == ("extra",)


def test_counting_from_zero_is_refused_where_it_could_be_either() -> None:
    assert reading("[0] > [2]", 4).notes == ("ambiguous",)


def test_a_number_that_more_digits_could_follow_is_dropped_from_a_cut_answer() -> None:
    cut = reading("14,3,1", 20, finish="length")
    assert cut.named == (14, 3)
    assert cut.notes == ("format", "cut", "missing")
    assert reading("[14] > [3] > [1", 20, finish="length").named == (14, 3)
    assert reading("Document 14 > Document 3 > Document 1", 20, finish="length").named == (14, 3)


def test_a_number_that_is_whole_is_kept_at_the_end_of_a_cut_answer() -> None:
    assert reading("14,1,3", 20, finish="length").named == (14, 1, 3)
    assert reading("[14] > [3] > [1]", 20, finish="length").named == (14, 3, 1)
    assert reading("3,2,1", finish="length").status is Status.OK


def test_a_cut_answer_that_is_written_worst_first_has_lost_its_best() -> None:
    assert reading("[3] < [1] < [2]", finish="length").notes == ("ambiguous",)


def test_a_cut_score_does_not_place_its_document() -> None:
    text = "[1]: 5/10\n[2]: 7/10\n[3]: 9/1"
    assert reading(text, finish="length").named == (2, 1)
