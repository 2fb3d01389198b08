"""Numbers in place of text: likelihoods and relevances, in the shapes of real servers."""

from __future__ import annotations

from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.backends.base import BackendOptions
from batchrank.backends.openai import OpenAIBackend
from batchrank.backends.scoring import (
    constrained_likelihood,
    echoed_likelihood,
    joined,
    read_relevances,
    rerank,
    rerank_texts,
)
from batchrank.calls import LikelihoodPrompt, RerankPrompt, Usage
from batchrank.errors import BadResponseError, FatalServerError, OverloadedError
from tests.backends.servers import Reply, scripted

PROMPT = LikelihoodPrompt('Passage: p\nQuery: "', 'say "hi"')
PAIR = RerankPrompt("q", ("one", "two"))
ORDER = (("1", 0.9), ("0", 0.2))

JINA = {
    "model": "m",
    "object": "list",
    "usage": {"prompt_tokens": 9, "total_tokens": 9},
    "results": [{"index": 0, "relevance_score": 0.2}, {"index": 1, "relevance_score": 0.9}],
}
COHERE = {
    "id": "x",
    "results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}],
    "meta": {"billed_units": {"search_units": 1}},
}
VOYAGE = {
    "object": "list",
    "data": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}],
    "usage": {"total_tokens": 9},
}
TEI = [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.2}]


def test_a_grammar_allows_the_tokens_of_the_target_only() -> None:
    call = constrained_likelihood(PROMPT, "m", 7)
    assert call.spelled is not None

    kept, sent = orjson.loads(call.body), orjson.loads(call.spelled([5, 17]))
    assert (call.path, call.target, kept["target"]) == ("/completion", PROMPT.target, PROMPT.target)
    assert sent["prompt"] == PROMPT.text
    assert (sent["grammar"], sent["n_predict"]) == ("root ::= <[5]> <[17]>", 2)
    assert (sent["n_probs"], sent["temperature"], sent["seed"]) == (1, 0, 7)
    assert "post_sampling_probs" not in sent


@pytest.mark.parametrize(("piece", "rule"), [("hi", "<[7]>"), ([230, 190], '"say \\"hi\\""')])
async def test_a_token_that_is_part_of_a_character_takes_the_text_for_the_rule(
    piece: object, rule: str
) -> None:
    reply = orjson.loads(generated(PROMPT.target, (PROMPT.target, -1.0)))
    tokens = {"tokens": [{"id": 7, "piece": piece}]}
    async with scripted({"/tokenize": tokens, "/completion": reply}) as server:
        backend = OpenAIBackend(BackendOptions(server.url))
        answer = await backend.send(constrained_likelihood(PROMPT, "m", 0), 5)
        await backend.close()

    assert answer.scored == ((PROMPT.target, -1.0),)
    assert orjson.loads(server.seen[-1].body)["grammar"] == f"root ::= {rule}"


@pytest.mark.parametrize(
    "tokens", ["{}", '{"tokens": []}', '{"tokens": [5]}', '{"tokens": [{"id": "a", "piece": "b"}]}']
)
async def test_a_server_without_tokens_gives_no_likelihood(tokens: str) -> None:
    async with scripted({"/tokenize": tokens}) as server:
        backend = OpenAIBackend(BackendOptions(server.url))
        with pytest.raises(BadResponseError, match="tokens"):
            await backend.send(constrained_likelihood(PROMPT, "m", 0), 5)
        await backend.close()


def generated(content: str, *tokens: tuple[str, float]) -> bytes:
    """What llama.cpp answers; the last entry is the token that ends it."""
    rows = [{"token": t, "bytes": list(t.encode()), "logprob": p} for t, p in tokens]
    return orjson.dumps(
        {
            "content": content,
            "tokens_evaluated": 12,
            "tokens_predicted": 3,
            "completion_probabilities": [*rows, {"token": "", "bytes": [], "logprob": -9.0}],
        }
    )


def test_generated_tokens_are_scored_without_the_one_that_ends_them() -> None:
    call = constrained_likelihood(PROMPT, "m", 0)
    answer = call.read(generated('say "hi"', ("say", -1.0), (' "hi"', -2.5)))

    assert answer.scored == (("say", -1.0), (' "hi"', -2.5))
    assert (answer.finish, answer.usage) == ("stop", Usage(12, 3))


def test_a_target_that_was_not_finished_is_told() -> None:
    call = constrained_likelihood(PROMPT, "m", 0)

    assert call.read(generated("say", ("say", -1.0))).finish == "length"


def echoed(*tokens: tuple[str, float | None]) -> bytes:
    """What vLLM answers to a prompt that it repeats."""
    logprobs = {"tokens": [t for t, _ in tokens], "token_logprobs": [p for _, p in tokens]}
    return orjson.dumps(
        {
            "choices": [{"index": 0, "text": "", "logprobs": logprobs}],
            "usage": {"prompt_tokens": 6, "completion_tokens": 0},
        }
    )


def test_of_an_echo_the_target_s_tokens_count() -> None:
    call = echoed_likelihood(PROMPT, "m", 0)
    body = orjson.loads(call.body)
    answer = call.read(
        echoed(("<s>", None), ("Passage", -5.0), (": p\n", -3.0), ("say", -1.0), (' "hi"', -2.5))
    )

    assert call.path == "/v1/completions"
    assert (body["prompt"], body["echo"], body["max_tokens"]) == (
        PROMPT.text + PROMPT.target,
        True,
        0,
    )
    assert answer.scored == (("say", -1.0), (' "hi"', -2.5))
    assert (answer.finish, answer.usage) == ("stop", Usage(6, 0))


def test_a_token_across_the_border_belongs_to_the_target() -> None:
    call = echoed_likelihood(PROMPT, "m", 0)
    answer = call.read(echoed(("x", None), ('"say', -1.5), (' "hi"', -2.5)))

    assert answer.scored == (('"say', -1.5), (' "hi"', -2.5))
    assert answer.finish == "stop"


def test_an_echo_that_does_not_end_in_the_target_is_no_score() -> None:
    call = echoed_likelihood(PROMPT, "m", 0)

    assert call.read(echoed(("x", None), ("say", -1.0), ("�", -1.0))).finish == "length"


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": [{"text": "t"}]}])
def test_an_answer_without_numbers_is_none(body: object) -> None:
    for call in (constrained_likelihood(PROMPT, "m", 0), echoed_likelihood(PROMPT, "m", 0)):
        with pytest.raises(BadResponseError, match="no log-probabilities"):
            call.read(orjson.dumps(body))


@pytest.mark.parametrize("shape", [JINA, COHERE, VOYAGE, TEI])
def test_relevances_are_read_in_every_shape(shape: object) -> None:
    assert read_relevances(orjson.dumps(shape)).scored == ORDER


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"results": [{"index": "0"}]}', b"<html>"])
def test_a_body_without_relevances_is_no_answer(body: bytes) -> None:
    with pytest.raises(BadResponseError, match="no relevances"):
        read_relevances(body)


def test_an_error_with_status_200_is_an_error() -> None:
    with pytest.raises(OverloadedError):
        read_relevances(b'{"error": {"code": 503, "message": "busy"}}')


def test_the_bodies_of_rerankers() -> None:
    shared, tei = rerank(PAIR, "/v1/rerank", "m"), rerank_texts(PAIR, "/rerank", "m")

    assert orjson.loads(shared.body) == {
        "model": "m",
        "query": "q",
        "documents": ["one", "two"],
        "return_documents": False,
    }
    assert orjson.loads(tei.body) == {"query": "q", "texts": ["one", "two"], "truncate": True}


@given(
    query=st.text(max_size=20),
    documents=st.lists(st.text(max_size=200), min_size=1, max_size=12),
    limit=st.integers(200, 600),
)
def test_parts_of_a_request_hold_every_document_once_within_the_limit(
    query: str, documents: list[str], limit: int
) -> None:
    with patch("batchrank.backends.scoring.TEI_BYTES", limit):
        call = rerank_texts(RerankPrompt(query, tuple(documents)), "/rerank", "m")
    parts = call.parts or (call,)
    assert all(len(part.body) <= limit for part in parts)
    sent = [text for part in parts for text in orjson.loads(part.body)["texts"]]
    assert len(sent) == len(documents)
    assert all(whole.startswith(text) for whole, text in zip(documents, sent, strict=True))
    answers = []
    for part in parts:
        count = len(orjson.loads(part.body)["texts"])
        rows = [{"index": place, "score": place / 7} for place in range(count)]
        answers.append(part.read(orjson.dumps(rows)))
    scored = joined(answers).scored
    assert sorted(int(place) for place, _ in scored) == list(range(len(documents)))
    assert [score for _, score in scored] == sorted((s for _, s in scored), reverse=True)


async def test_text_embeddings_inference_is_known_by_its_info() -> None:
    info = {"model_id": "bge", "model_sha": "abc", "model_dtype": "float16"}
    async with scripted({"/info": Reply(info), "/rerank": Reply(TEI)}) as server:
        backend = OpenAIBackend(BackendOptions(server.url, rerank=True))
        told = await backend.describe()
        answer = await backend.send(backend.encode(PAIR), 10)
        await backend.close()

    assert (told.kind, told.model) == ("tei", "bge")
    assert told.identity == "tei dtype=float16 id=bge sha=abc"
    assert answer.scored == ORDER


async def test_a_reranker_that_gets_a_plain_pair_wrong_is_refused() -> None:
    wrong = [{"index": 0, "score": 0.9}, {"index": 1, "score": 0.2}]
    async with scripted({"/info": Reply({"model_id": "bge"}), "/rerank": Reply(wrong)}) as server:
        backend = OpenAIBackend(BackendOptions(server.url, rerank=True))
        with pytest.raises(FatalServerError, match="served with its own prompt template"):
            await backend.describe()
        await backend.close()
