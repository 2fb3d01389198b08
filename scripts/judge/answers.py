"""What a judge answers: a pure function of its settings, its knowledge and the request."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from .config import Field, JudgeConfig
from .constraints import AnswerForm, Labels, constrained_form, explained, free_form
from .knowledge import Knowledge
from .malformed import spoiled
from .pointwise import GRADES, WORDS, Logprobs, grade, query_likelihood, yes_or_no
from .prompt import count_prompt, label, read_prompt
from .recognise import CorpusRecogniser, DocidRecogniser, HashRecogniser, Recognised, Recogniser
from .scoring import overlap, scores

_PROBE = tuple(label(number, False) for number in range(1, 27))
_GENERATED = re.compile(r"\s*(?:\d|[^\W\d]+|[^\w\s])")

Purpose = Literal["window", "other", "rerank"]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: `tokens` are the pieces of `text`, `top` the first one's log-probabilities.

    `purpose` is "window" where a document was recognised, "other" for a probe or foreign text;
    `unknown` counts the documents that were not recognised.
    """

    text: str
    finish: Literal["stop", "length"]
    prompt_tokens: int
    completion_tokens: int
    tokens: tuple[str, ...]
    top: Logprobs
    purpose: Purpose
    unknown: int


class Judge:
    """Answers requests; the same request always gets the same answer."""

    def __init__(self, config: JudgeConfig, knowledge: Knowledge | None) -> None:
        self.config = config
        self._unbiased = replace(config, bias="none")
        self._recogniser = _recogniser(config, knowledge)
        self._query = re.compile(config.query_pattern, re.MULTILINE)
        self._wanted = re.compile(config.wanted_pattern)

    def chat(
        self,
        payload: Mapping[str, Any],
        text: str,
        digest: str,
        *,
        honoured: frozenset[Field],
        max_tokens: int | None,
        top_logprobs: int | None,
    ) -> Reply:
        """Answer the prompt `text` of a request whose bytes hash to `digest`.

        Raises UnanswerableError where the request has a constraint the judge can't satisfy.
        """
        prompt = read_prompt(text, self._query, self._wanted)
        scored, seen = self._scores(self.config, prompt.query, prompt.texts, digest)
        top: Logprobs = ()
        if prompt.labels or not prompt.texts:
            labels = prompt.labels or _PROBE
            order, wanted = _best_first(labels, scored), prompt.wanted
            if top_logprobs:
                top = _first_token(labels, scored, top_logprobs)
        elif top_logprobs:
            top = yes_or_no(scored[0])[:top_logprobs]
            labels, order, wanted = WORDS, tuple(word for word, _ in top), 1
        else:
            labels, wanted = GRADES, 1
            order = (grade(scored[0]), *GRADES)
        form = constrained_form(payload, honoured, labels)
        if form is None:
            form = free_form(top_logprobs is not None)
            if prompt.conclusion:
                form = explained(form, prompt.conclusion)
        best = order[: form.count(wanted or len(order))]
        unknown = seen.docids.count(None)
        trial = unknown == len(seen.docids)
        answer, torn = self._write(form, best, len(prompt.texts), digest, trial=trial)
        tokens = tuple(_GENERATED.findall(answer))
        # One more for the token that ends an answer.
        cut = max_tokens is not None and len(tokens) + 1 > max_tokens
        tokens = tokens[:max_tokens] if cut else tokens
        return Reply(
            text="".join(tokens) if cut else answer,
            finish="length" if cut or torn else "stop",
            prompt_tokens=count_prompt(text),
            completion_tokens=len(tokens) + (not cut),
            tokens=tokens,
            top=top[: self.config.alternatives],
            purpose="other" if trial else "window",
            unknown=unknown,
        )

    def likelihood(self, text: str, target: str, digest: str) -> tuple[Logprobs, int]:
        """The tokens of `target` with log-probabilities that rise with the relevance of the text.

        Beside them the number of texts that were not recognised.
        """
        shown = read_prompt(text, self._query, self._wanted).texts[:1]
        scored, seen = self._scores(self._unbiased, target, shown, digest)
        return query_likelihood(target, sum(scored)), seen.docids.count(None)

    def rerank(
        self, query: str, texts: Sequence[str], digest: str
    ) -> tuple[tuple[float, ...], int]:
        """A relevance from 0 to 1 for each text, without position bias, and the unknown texts."""
        scored, seen = self._scores(self._unbiased, query, texts, digest)
        return tuple(1 / (1 + math.exp(-score)) for score in scored), seen.docids.count(None)

    def _write(
        self, form: AnswerForm, best: Labels, count: int, digest: str, *, trial: bool
    ) -> tuple[str, bool]:
        """The answer's text and whether it ends torn."""
        if not count and not form.constrained:
            return "ok", False
        config = self.config
        if config.malformed_rate and not (trial and config.sound_trials):
            stream = random.Random(f"{config.seed} malformed {digest}")
            if stream.random() < config.malformed_rate:
                return spoiled(config.malformed, form, best, count, stream)
        return form.write(best), False

    def _scores(
        self, config: JudgeConfig, query: str, texts: Sequence[str], digest: str
    ) -> tuple[tuple[float, ...], Recognised]:
        seen = self._recogniser.recognise(query, texts)
        if any(docid is not None for docid in seen.docids):
            return scores(config, seen, digest), seen
        # Nothing is known, such as a client's check with texts of its own: judge by the words.
        return overlap(query, texts), seen


def _recogniser(config: JudgeConfig, knowledge: Knowledge | None) -> Recogniser:
    if knowledge is None:
        return HashRecogniser(config.seed)
    return DocidRecogniser(knowledge) if config.docid_text else CorpusRecogniser(knowledge)


def _best_first(labels: Labels, scored: Sequence[float]) -> Labels:
    """Labels by falling score; those of equal score, or all where there is none, as they are."""
    if not scored:
        return labels
    return tuple(labels[place] for place in _places(scored))


def _places(scored: Sequence[float]) -> list[int]:
    return sorted(range(len(scored)), key=lambda place: -scored[place])


def _first_token(labels: Labels, scored: Sequence[float], top: int) -> Logprobs:
    """The `top` most likely identifiers: a softmax of the scores, where there are any."""
    scored = scored or [0.0] * len(labels)
    highest = max(scored)
    total = math.log(sum(math.exp(score - highest) for score in scored)) + highest
    return tuple((labels[place], scored[place] - total) for place in _places(scored)[:top])
