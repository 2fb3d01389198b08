"""Spoils an answer in one of the ways in which real models spoil theirs."""

from __future__ import annotations

import random

from .config import Malformed
from .constraints import AnswerForm, Labels
from .prompt import label

POSSIBLE_UNDER_CONSTRAINT: frozenset[Malformed] = frozenset({"repeats", "torn", "empty"})
"""What can still go wrong when the server obeys a constraint."""


def spoiled(
    kinds: tuple[Malformed, ...], form: AnswerForm, best: Labels, count: int, stream: random.Random
) -> tuple[str, bool]:
    """An answer spoiled in one of `kinds`, and whether it ends torn.

    `best` are the identifiers of the good answer, `count` is the number of documents shown. Where
    the form is constrained and rules all `kinds` out, the answer stays good.
    """
    possible = [kind for kind in kinds if not form.constrained or kind in POSSIBLE_UNDER_CONSTRAINT]
    if not possible:
        return form.write(best), False
    kind = stream.choice(possible)
    good = form.write(best)
    if kind == "prose":
        text = f"All {count} passages are about the topic and equally helpful."
    elif kind == "empty":
        text = ""
    elif kind == "think":
        text = f"<think>\nThe query asks for one thing and [{best[-1]}] comes near, but"
    elif kind == "torn":
        text = good[: len(good) // 2]
    elif kind == "missing":
        text = form.write(best[: len(best) // 2])
    elif kind == "repeats":
        text = form.write(best[:1] * len(best))
    else:
        beyond = label(count + stream.randint(1, 5), letters=best[0].isalpha())
        text = form.write((*best[:-1], beyond))
    return text, kind in ("torn", "think")
