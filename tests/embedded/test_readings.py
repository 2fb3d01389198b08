"""Readings of numbers against a real llama.cpp with a real model."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from batchrank.backends.base import BackendOptions
from batchrank.backends.openai import OpenAIBackend
from batchrank.calls import Form, LikelihoodPrompt
from batchrank.prompts.loading import load_template
from batchrank.prompts.render import Cut, QueryTexts
from batchrank.prompts.tokens import TokenCounter
from batchrank.readings.base import Means
from batchrank.readings.first_token import FirstToken
from batchrank.readings.likelihood import Likelihood
from batchrank.readings.yes_no import YesNo
from batchrank.serving.sanity import sanity_requests
from batchrank.values import Status, Window

REQUEST, _ = sanity_requests()[1]
DOCIDS = tuple(document.docid for document in REQUEST.candidates)
TEXTS = QueryTexts(REQUEST, len(DOCIDS), Cut(TokenCounter(), 50))
LETTERS = load_template("letters-en", "letters")
BINARY = load_template("binary-en", "binary")
LIKELIHOOD = load_template("likelihood-en", "likelihood")
SECONDS = 300


@pytest.fixture
async def backend(llama_server: str) -> AsyncIterator[OpenAIBackend]:
    """A real model, ready to be asked."""
    backend = OpenAIBackend(BackendOptions(llama_server))
    await backend.describe()
    yield backend
    await backend.close()


async def test_a_window_is_ranked_by_one_generated_token(backend: OpenAIBackend) -> None:
    reader, window = FirstToken(), Window(DOCIDS, DOCIDS, 2)
    means = Means(LETTERS, Form.TEXT, top_logprobs=40)

    call = backend.encode(reader.prompt(TEXTS, window, means))
    answer = await backend.send(call, SECONDS)
    read = reader.read(window, answer)

    assert answer.usage.completion_tokens == 1
    assert len(answer.scored) == 40
    letters: dict[str, float] = {}
    for token, logprob in answer.scored:
        letter = token.strip()
        if letter in ("A", "B", "C", "D"):
            letters[letter] = max(logprob, letters.get(letter, logprob))
    best_first = sorted(letters, key=lambda letter: -letters[letter])
    assert read.named == len(best_first) > 0
    assert list(read.order[: read.named]) == [DOCIDS["ABCD".index(name)] for name in best_first]
    assert read.scores == tuple(letters[name] for name in best_first)


async def test_yes_and_no_have_probabilities(backend: OpenAIBackend) -> None:
    reader, window = YesNo(), Window(DOCIDS[:1], DOCIDS[:1], 1)
    means = Means(BINARY, Form.TEXT, top_logprobs=40)

    call = backend.encode(reader.prompt(TEXTS, window, means))
    answer = await backend.send(call, SECONDS)

    assert answer.usage.completion_tokens == 1
    assert reader.read(window, answer).status is Status.OK


@pytest.mark.parametrize(
    "target", ["capital of Australia", 'a "quoted" \\ {query} ≥ 3', "澳大利亚的首都"]
)
async def test_the_likelihood_is_of_the_whole_target(backend: OpenAIBackend, target: str) -> None:
    reader, window = Likelihood(), Window(DOCIDS[:1], DOCIDS[:1], 1)
    means = Means(LIKELIHOOD, Form.TEXT)
    text = reader.prompt(TEXTS, window, means).text

    answer = await backend.send(backend.encode(LikelihoodPrompt(text, target)), SECONDS)

    assert (answer.text, answer.finish) == (target, "stop")
    assert all(logprob <= 0 for _, logprob in answer.scored)
    assert reader.read(window, answer).scores == (sum(logprob for _, logprob in answer.scored),)


async def test_a_passage_makes_its_own_words_likelier(backend: OpenAIBackend) -> None:
    likelihoods = []
    for passage in ("Canberra is the capital of Australia.", "Basil likes warm and moist soil."):
        prompt = LikelihoodPrompt(f'Passage: {passage}\nQuery: "', "capital of Australia")
        answer = await backend.send(backend.encode(prompt), SECONDS)
        likelihoods.append(sum(logprob for _, logprob in answer.scored))

    assert likelihoods[0] > likelihoods[1] + 5
