"""Fuses several rankings of the same documents into one."""

from __future__ import annotations

from collections.abc import Sequence

from batchrank.values import Ranking


def borda(rankings: Sequence[Ranking], prior: Ranking) -> Ranking:
    """Order by the sum of ranks over `rankings`, each a permutation of `prior`; ties to `prior`.

    Borda's count of 1781: n − rank points a ranking, so the least sum of ranks wins.
    """
    if len(rankings) == 1:
        return rankings[0]
    points = dict.fromkeys(prior, 0)
    for ranking in rankings:
        for rank, docid in enumerate(ranking):
            points[docid] += rank
    return tuple(sorted(prior, key=points.__getitem__))
