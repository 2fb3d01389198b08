"""The judge finds out what it is shown and puts it in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.calls import Form
from batchrank.prompts.loading import load_template
from batchrank.prompts.render import Cut, QueryTexts
from batchrank.prompts.tokens import TokenCounter
from batchrank.readings.base import Means
from batchrank.readings.identifiers import Identifiers
from batchrank.values import Document, Query, Request, Window
from scripts.judge import JudgeConfig, JudgeServer, Knowledge, read_knowledge
from scripts.judge.answers import Judge
from scripts.judge.config import QUERY_PATTERN, WANTED_PATTERN
from scripts.judge.prompt import read_prompt
from scripts.judge.recognise import CorpusRecogniser

from .asking import FROST, FRUIT, KEEP, NAMES, content, contents, get, named, texts, window


async def test_a_perfect_judge_orders_by_the_gains_of_the_query_shown() -> None:
    answers = await contents(
        JudgeConfig(),
        [window(texts()), window(texts(), "fruit that hates frost"), window(texts(), "")],
    )
    assert named(answers[0]) == KEEP
    assert named(answers[1]) == FROST
    assert named(answers[2]) in (KEEP, FROST)  # both queries have all five documents


async def test_a_chinese_query_line_names_the_query() -> None:
    prompt = window(texts()).replace(
        "Query: which fruit keeps longest", "查询：fruit that hates frost"
    )
    assert named((await contents(JudgeConfig(), [prompt]))[0]) == FROST


async def test_without_a_query_line_the_documents_tell_the_query() -> None:
    knowledge = Knowledge(
        documents=FRUIT.documents,
        gains={"only": {"pear": 1.0, "plum": 2.0}, "other": {"lime": 3.0}},
    )
    async with JudgeServer(knowledge=knowledge) as judge:
        shown = ("pear", "plum")
        answer = await content(judge, "[1] {}\n[2] {}".format(*texts(shown)))
    assert named(answer, shown) == ("plum", "pear")


async def test_documents_are_known_by_title_cut_or_cleaned() -> None:
    apple, pear, plum = texts(("apple", "pear", "plum"))
    lime = "Limes\nA lime tree bears"
    fig = "Figs need a WARM wall, <| little (2) water"
    shown = [pear[:20], lime, apple.replace(" ", "\n"), fig, f"{plum}\n[7] and [1]\nmore"]
    async with JudgeServer(knowledge=FRUIT) as judge:
        answer = await content(judge, window(shown))
        assert judge.unknown == 1  # a word was put into the text of the fig
    assert named(answer)[:3] == KEEP[:3]


async def test_unknown_documents_are_counted_and_worth_nothing() -> None:
    async with JudgeServer(knowledge=FRUIT) as judge:
        answer = await content(judge, window([*texts(("pear",)), "Quinces.", *texts(("plum",))]))
        _, _, stats = await get(judge, "/judge/stats")
    assert answer == "[3] > [1] > [2]"
    assert stats["unknown"] == judge.unknown == 1


@given(shown=st.permutations(NAMES))
async def test_equal_gains_come_in_one_order_however_they_are_shown(shown: list[str]) -> None:
    knowledge = Knowledge(FRUIT.documents, {"q": "which fruit"}, {"q": dict.fromkeys(NAMES, 1.0)})
    own = Judge(JudgeConfig(), knowledge)
    orders = set()
    for query in ("which fruit", "another"):
        prompt = window(texts(shown), query)
        for top in (None, 5):
            reply = own.chat(
                {}, prompt, "", honoured=frozenset(), max_tokens=None, top_logprobs=top
            )
            labels = [name for name, _ in reply.top] if top else re.findall(r"\d+", reply.text)
            orders.add(tuple(shown[int(label) - 1] for label in labels))
        relevances, _ = own.rerank(query, texts(shown), "")
        best = sorted(range(len(shown)), key=lambda place: -relevances[place])
        orders.add(tuple(shown[place] for place in best))
    assert len(orders) == 1
    assert next(iter(orders)) != tuple(sorted(NAMES))


async def test_texts_that_fit_two_documents_of_different_gain_are_unknown() -> None:
    knowledge = Knowledge(
        documents={"a": ("", "the same"), "b": ("", "the same"), "c": ("", "another")},
        gains={"q": {"a": 3.0, "b": 1.0, "c": 1.0}},
    )
    async with JudgeServer(knowledge=knowledge) as judge:
        assert await content(judge, window(["the same", "another"])) == "[2] > [1]"
        assert judge.unknown == 1


async def test_a_window_of_foreign_documents_is_ordered_by_the_words_of_the_query() -> None:
    prompt = window(
        ["Rain is likely on Monday.", "Bake bread at 230 degrees.", "Bread, bread."],
        "how hot to bake bread",
    )
    async with JudgeServer(JudgeConfig(noise=5.0), FRUIT) as judge:
        assert await content(judge, prompt) == "[2] > [3] > [1]"
        assert [call.purpose for call in judge.calls] == ["other"]


async def test_docids_as_texts_need_no_corpus() -> None:
    knowledge = Knowledge(gains=FRUIT.gains)
    async with JudgeServer(JudgeConfig(docid_text=True), knowledge) as judge:
        assert named(await content(judge, window(NAMES, "frost"))) == FROST
        assert judge.unknown == 0


async def test_without_knowledge_any_text_has_a_gain_fixed_by_the_seed() -> None:
    async def order(seed: int, shown: list[str]) -> list[str]:
        async with JudgeServer(JudgeConfig(seed=seed)) as judge:
            answer = await content(judge, window(shown))
        return [shown[int(mark) - 1] for mark in re.findall(r"\d+", answer)]

    shown = [f"Text number {number}." for number in range(20)]
    orders = [await order(seed, shown) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert await order(0, shown[::-1]) == orders[0]


async def test_only_as_many_are_named_as_the_prompt_asks_for() -> None:
    tasks = ("Name the 2 best of the 5 documents.", "请从 5 篇文档中选出最好的 3 篇。")
    prompts = [window(texts(), "the 4 best keepers", task=task) for task in tasks]
    assert [len(named(answer)) for answer in await contents(JudgeConfig(), prompts)] == [2, 3]


async def test_examples_before_the_documents_are_no_documents() -> None:
    prompt = "Answer like\n[2] > [1]\nor\n[1] > [2]\n" + window(texts())
    assert named((await contents(JudgeConfig(), [prompt]))[0]) == KEEP


@pytest.mark.parametrize("name", ["dl19", "noveleval", "cosqa"])
def test_every_judged_document_is_found_whole_and_cut(shared_data: Path, name: str) -> None:
    folder = shared_data / name
    knowledge = read_knowledge(
        gains=folder / "qrels.txt",
        corpus=folder / "corpus.jsonl.gz",
        queries=folder / "queries.jsonl",
    )
    recogniser = CorpusRecogniser(knowledge)
    for qid, gains in knowledge.gains.items():
        docids = [docid for docid in gains if docid in knowledge.documents]
        shown = [knowledge.documents[docid] for docid in docids]
        whole = recogniser.recognise(knowledge.queries[qid], [text for _, text in shown])
        assert whole.qid == qid
        assert whole.gains == tuple(gains[docid] for docid in docids)
        titled = recogniser.recognise("", [f"{title}\n{text}"[:300] for title, text in shown])
        assert titled.docids.count(None) <= len(docids) // 10


DOCUMENTS = st.lists(
    st.text(alphabet="ab ,\n[1]", min_size=1, max_size=90).filter(
        lambda t: any(map(str.isalnum, t))
    ),
    min_size=1,
    max_size=8,
)


@given(DOCUMENTS, st.integers(1, 100))
def test_a_cut_text_is_its_document_or_another_that_starts_alike(
    corpus: list[str], cut: int
) -> None:
    knowledge = Knowledge(documents={str(i): ("", text) for i, text in enumerate(corpus)})
    recogniser = CorpusRecogniser(knowledge)

    def bare(text: str) -> str:
        return "".join(filter(str.isalnum, text))

    for text in corpus:
        shown = text[:cut]
        (docid,) = recogniser.recognise("", [shown]).docids
        if bare(shown):
            assert docid is not None
            first_line = bare(shown.split("\n")[0])
            assert bare(corpus[int(docid)]).startswith((bare(shown), first_line or bare(shown)))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_built_in_templates_are_read_back(language: str) -> None:
    texts_by_docid = {docid: text for docid, (_, text) in FRUIT.documents.items()}
    request = Request(
        Query("frost", "the 7 best fruits that hate frost"),
        tuple(Document(name, f"{texts_by_docid[name]}\n\n[2] <|im_end|>") for name in NAMES),
    )
    shown = QueryTexts(request, len(NAMES), Cut(TokenCounter(), 200))
    means = Means(load_template(f"direct-{language}"), Form.TEXT)
    text = Identifiers(full=False).prompt(shown, Window(NAMES, NAMES, 3), means).text
    found = read_prompt(text, re.compile(QUERY_PATTERN, re.MULTILINE), re.compile(WANTED_PATTERN))
    assert found.labels == tuple("12345")
    assert (found.query, found.wanted) == (request.query.text, 3)
    assert CorpusRecogniser(FRUIT).recognise("", found.texts).docids == NAMES
