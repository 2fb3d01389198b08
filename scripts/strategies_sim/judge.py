"""A listwise judge in process: grades, made worse by noise of two kinds and by position bias.

The score of a document is

    grade + spread · N(seed, query, document) + flutter · N(seed, request, place) + bias(place)

*Spread* is what the judge gets wrong about a document in every prompt. *Flutter* is drawn anew for
each distinct prompt: what another presentation, or other neighbours, change. The same window shown
in another order is another request; the very same window gets the very same scores, however many
documents are to be named.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from batchrank.answers.forms import max_tokens
from batchrank.calls import Form
from batchrank.strategies.base import Plan
from batchrank.values import Permutation, Ranking, Status, Window
from scripts.judge.config import Bias
from scripts.judge.scoring import bias, normal
from scripts.strategies_sim.topics import FRAME_TOKENS, FRAME_TOKENS_OF_ONE, Topic

_DRAWS = np.random.default_rng(20_240_501).standard_normal(1 << 20)
"""N(0, 1); a request's own draws start where its hash says, far cheaper than a generator each."""
_LONGEST = 1_000


@dataclass(frozen=True, slots=True)
class Setting:
    """How well a judge judges; `bias_strength` is the gain of the favoured place in a prompt."""

    name: str
    spread: float
    flutter: float
    bias: Bias = "none"
    bias_strength: float = 0.0


@dataclass(slots=True)
class Cost:
    """What a query took: rounds that wait for each other, distinct calls and their tokens."""

    depth: float = 0
    calls: float = 0
    documents: float = 0
    prompt_tokens: float = 0
    generated_tokens: float = 0


class Judge:
    """Judges the windows of one query under one seed."""

    def __init__(self, setting: Setting, topic: Topic, seed: int) -> None:
        self._setting = setting
        self.topic = topic
        self._salt = zlib.crc32(f"{seed} {topic.qid}".encode())
        self._believed = {
            docid: grade + setting.spread * normal(seed, topic.qid, docid)
            for docid, grade in topic.grades.items()
        }

    def play(self, plan: Plan, *, full: bool) -> tuple[Ranking, Cost]:
        """Run `plan` to its end; `full` names all documents of a window, else what it wants."""
        cost = Cost()
        asked: set[tuple[int, Ranking]] = set()
        try:
            windows = next(plan)
            while True:
                cost.depth += 1
                answers = []
                for window in windows:
                    named = len(window.shown) if full else window.wants
                    answers.append(self._answer(window, named))
                    if (named, window.shown) not in asked:
                        asked.add((named, window.shown))
                        self._charge(cost, window.shown, named)
                windows = plan.send(answers)
        except StopIteration as end:
            ranking: Ranking = end.value
            return ranking, cost

    def _answer(self, window: Window, named: int) -> Permutation:
        shown = window.shown
        count = len(shown)
        scores = np.array([self._believed[docid] for docid in shown])
        if self._setting.flutter:
            request = zlib.crc32("\x1f".join(shown).encode(), self._salt)
            start = request % (len(_DRAWS) - _LONGEST)
            scores += self._setting.flutter * _DRAWS[start : start + count]
        if self._setting.bias != "none":
            scores += self._setting.bias_strength * np.array(bias(self._setting.bias, count))
        if count == 1:
            return Permutation(shown, 1, Status.OK, scores=(float(scores[0]),))
        order = np.argsort(-scores, kind="stable").tolist()
        best = tuple(shown[place] for place in order[:named])
        if named == count:
            return Permutation(best, named, Status.OK)
        taken = frozenset(best)
        rest = tuple(docid for docid in window.prior if docid not in taken)
        return Permutation(best + rest, named, Status.OK)

    def _charge(self, cost: Cost, shown: Ranking, named: int) -> None:
        tokens = self.topic.tokens
        cost.calls += 1
        cost.documents += len(shown)
        frame = FRAME_TOKENS_OF_ONE if len(shown) == 1 else FRAME_TOKENS
        cost.prompt_tokens += frame + self.topic.query_tokens + sum([tokens[d] for d in shown])
        cost.generated_tokens += max_tokens(Form.GRAMMAR, len(shown), named)
