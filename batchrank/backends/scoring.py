"""Asks for numbers in place of text: likelihoods of a given text, and a reranker's relevances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, zip_longest

import orjson

from batchrank.backends.base import Call
from batchrank.backends.bodies import read_object, usage_in
from batchrank.backends.failures import failure_in
from batchrank.backends.loose import count, dig, excerpt, number, parse, rows, text
from batchrank.calls import Answer, LikelihoodPrompt, RerankPrompt, Usage
from batchrank.errors import BadResponseError

TEI_BYTES = 2_000_000
"""Of a request that Text Embeddings Inference takes by default (`--payload-limit`)."""
_LONGEST_ESCAPE = 6
"""Bytes that JSON makes of one."""


def constrained_likelihood(prompt: LikelihoodPrompt, model: str, seed: int) -> Call:
    """For llama.cpp: generation under a grammar that allows only the target's own tokens.

    The log-probabilities it returns are those before the grammar. A grammar of the target's text
    would leave the tokenisation to the model: it chose three times as many tokens, others for every
    document, and their sum said nothing.
    """
    request = {
        "model": model,
        "prompt": prompt.text,
        "n_probs": 1,
        "stream": False,
        "seed": seed,
        "temperature": 0,
        "cache_prompt": True,
    }

    def spelled(tokens: Sequence[int] | None) -> bytes:
        if tokens is None:
            most = len(prompt.target.encode()) + 1
            grammar = {"grammar": f"root ::= {_literal(prompt.target)}", "n_predict": most}
        else:
            rule = " ".join(f"<[{token}]>" for token in tokens)
            grammar = {"grammar": f"root ::= {rule}", "n_predict": len(tokens)}
        return orjson.dumps(request | grammar)

    read = partial(_read_generated, target=prompt.target)
    body = orjson.dumps({**request, "target": prompt.target})
    return Call("/completion", body, read, prompt.target, spelled)


def echoed_likelihood(prompt: LikelihoodPrompt, model: str, seed: int) -> Call:
    """For vLLM, SGLang and others with OpenAI's older route: the prompt's own log-probabilities.

    Nothing is generated.
    """
    body = {
        "model": model,
        "prompt": prompt.text + prompt.target,
        "echo": True,
        "logprobs": 1,
        "max_tokens": 0,
        "temperature": 0,
        "seed": seed,
        "stream": False,
    }
    read = partial(_read_echo, target=prompt.target)
    return Call("/v1/completions", orjson.dumps(body), read)


def rerank(prompt: RerankPrompt, path: str, model: str) -> Call:
    """The shape that Jina, Cohere, Voyage, llama.cpp and vLLM share."""
    body = {
        "model": model,
        "query": prompt.query,
        "documents": prompt.documents,
        "return_documents": False,
    }
    return Call(path, orjson.dumps(body), read_relevances)


def rerank_texts(prompt: RerankPrompt, path: str, _model: str) -> Call:
    """The shape of Text Embeddings Inference, which serves one model and refuses to be told it.

    What would be longer than it takes is sent in parts. A document that is longer by itself is cut:
    of two megabytes the model reads the beginning alone (`truncate`).
    """

    def body(texts: Sequence[str]) -> bytes:
        return orjson.dumps({"query": prompt.query, "texts": texts, "truncate": True})

    whole = body(prompt.documents)
    if len(whole) <= TEI_BYTES:
        return Call(path, whole, read_relevances)
    room = TEI_BYTES - len(body(()))
    texts = [_within(document, room) for document in prompt.documents]
    starts, used = [0], 0
    for place, shown in enumerate(texts):
        size = len(orjson.dumps(shown)) + 1
        if used + size > room and place:
            starts.append(place)
            used = 0
        used += size
    parts = tuple(
        Call(path, body(texts[start:end]), partial(read_relevances, first=start))
        for start, end in zip_longest(starts, starts[1:])
    )
    return Call(path, whole, read_relevances, parts=parts)


def _within(document: str, room: int) -> str:
    """It where its JSON has fewer than `room` bytes, and else a beginning of it that does."""
    if len(orjson.dumps(document)) < room:
        return document
    return document.encode()[: (room - 3) // _LONGEST_ESCAPE].decode(errors="ignore")


def joined(answers: Sequence[Answer]) -> Answer:
    """The relevances of the parts of a request as those of all of it."""
    scored = sorted((pair for one in answers for pair in one.scored), key=lambda pair: -pair[1])
    return replace(
        answers[0],
        usage=sum((one.usage for one in answers), Usage()),
        seconds=sum(one.seconds for one in answers),
        scored=tuple(scored),
    )


def read_relevances(body: bytes, *, first: int = 0) -> Answer:
    """The scores of a reranker by document, best first, in any of the shapes.

    The server's first document is that at place `first` of the prompt.
    Raises BadResponseError where there are none, ServerError where it is an error object.
    """
    value = parse(body)
    usage, model = Usage(), ""
    if isinstance(value, dict):
        error = failure_in(value)
        if error is not None:
            raise error
        told = count(dig(value, "usage", "prompt_tokens")) or count(
            dig(value, "usage", "total_tokens")
        )
        usage, model = Usage(told or 0), text(value.get("model"))
        value = value.get("results") or value.get("data")
    scored = []
    for row in rows(value):
        place, score = count(row.get("index")), number(row.get("relevance_score", row.get("score")))
        if place is not None and score is not None:
            scored.append((str(first + place), score))
    if not scored:
        raise BadResponseError(f"The server's answer holds no relevances: {excerpt(body)}")
    scored.sort(key=lambda pair: -pair[1])
    return Answer("", usage=usage, scored=tuple(scored), model=model)


def _literal(target: str) -> str:
    """`target` as a GBNF string; its escapes are those of JSON for all that a query can hold."""
    return orjson.dumps(target).decode()


def _read_generated(body: bytes, *, target: str) -> Answer:
    value = read_object(body)
    content = text(value.get("content"))
    scored = [
        (text(row.get("token")), logprob)
        for row in rows(value.get("completion_probabilities"))
        # The token that ends an answer is no part of the target.
        if (logprob := number(row.get("logprob"))) is not None and row.get("bytes") != []
    ]
    if not content and not scored:
        raise BadResponseError(f"The server's answer holds no log-probabilities: {excerpt(body)}")
    return Answer(
        content,
        finish="stop" if content == target and scored else "length",
        usage=Usage(
            count(value.get("tokens_evaluated")) or 0, count(value.get("tokens_predicted")) or 0
        ),
        scored=tuple(scored),
        model=text(value.get("model")),
    )


def _read_echo(body: bytes, *, target: str) -> Answer:
    value = read_object(body)
    choice = next(iter(rows(value.get("choices"))), {})
    tokens, logprobs = dig(choice, "logprobs", "tokens"), dig(choice, "logprobs", "token_logprobs")
    if not isinstance(tokens, list) or not isinstance(logprobs, list):
        raise BadResponseError(f"The server's answer holds no log-probabilities: {excerpt(body)}")
    pairs = _tail(
        [(text(token), number(p)) for token, p in zip(tokens, logprobs, strict=False)], target
    )
    scored = tuple((token, logprob) for token, logprob in pairs if logprob is not None)
    shown = "".join(token for token, _ in scored)
    return Answer(
        shown,
        finish="stop" if shown.endswith(target) else "length",
        usage=usage_in(value) or Usage(),
        scored=scored,
        model=text(value.get("model")),
    )


def _tail(
    pairs: Sequence[tuple[str, float | None]], target: str
) -> Sequence[tuple[str, float | None]]:
    """The last tokens that hold `target`; one that also ends the text before belongs to it."""
    lengths = accumulate(len(token) for token, _ in reversed(pairs))
    for used, length in enumerate(lengths, start=1):
        if length >= len(target):
            return pairs[-used:]
    return pairs
