"""The best of a small set, asked until the top k is sorted (Zhuang et al. 2024, Setwise).

`heap` is a heap sort whose nodes have set size − 1 children: a node and its children are one
window, and all nodes of one depth are settled in the same round. `insertion` (Podolak et al. 2025)
sorts the first k and then lets sets of others challenge the k-th, all sets in one round; it is
cheap where the first stage is good. With a perfect judge both promise their top k. Windows want one
document only, so an answer is one identifier.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Literal

from batchrank.strategies.base import Plan, Round, Strategy
from batchrank.values import Permutation, Ranking, Window

Method = Literal["heap", "insertion"]
Steps = Generator[Round, Sequence[Permutation], None]


def setwise(set_size: int, k: int, method: Method) -> Strategy:
    """Make the strategy; `set_size` documents, at least 2, stand in one window.

    What is not among the k best keeps the first stage's order below.
    """
    search = _by_heap if method == "heap" else _by_insertion

    def plan(first_stage: Ranking) -> Plan:
        best: list[str] = []
        yield from search(first_stage, set_size, min(k, len(first_stage)), best)
        chosen = frozenset(best)
        return (*best, *(docid for docid in first_stage if docid not in chosen))

    return plan


def _by_heap(first_stage: Ranking, set_size: int, k: int, best: list[str]) -> Steps:
    rank = {docid: position for position, docid in enumerate(first_stage)}
    heap = list(first_stage)
    arity = set_size - 1
    depths = [range(0, 1)]
    while depths[-1].stop < len(heap):
        depths.append(range(depths[-1].stop, depths[-1].stop + len(depths[-1]) * arity))
    for nodes in reversed(depths):
        yield from _settle(heap, arity, rank, nodes)
    for number in range(k):
        if number > 0:
            heap[0] = heap.pop()
            yield from _settle(heap, arity, rank, (0,))
        best.append(heap[0])


def _settle(heap: list[str], arity: int, rank: dict[str, int], nodes: Sequence[int]) -> Steps:
    """Let the documents of `nodes`, which share no descendant, sink until the best are on top."""
    while nodes := [node for node in nodes if node * arity + 1 < len(heap)]:
        families = []
        for node in nodes:
            children = heap[node * arity + 1 : node * arity + arity + 1]
            families.append(tuple(sorted((heap[node], *children), key=rank.__getitem__)))
        answers = yield tuple(Window(family, family, 1) for family in families)
        sunk = []
        for node, answer in zip(nodes, answers, strict=True):
            winner = answer.order[0]
            if winner != heap[node]:
                child = heap.index(winner, node * arity + 1)
                heap[node], heap[child] = winner, heap[node]
                sunk.append(child)
        nodes = sunk


def _by_insertion(first_stage: Ranking, set_size: int, k: int, best: list[str]) -> Steps:
    for docid in first_stage[:k]:
        yield from _insert(docid, best)
    others = first_stage[k:]
    while others:
        last = best[-1]
        sets = [
            others[start : start + set_size - 1] for start in range(0, len(others), set_size - 1)
        ]
        answers = yield tuple(Window((last, *some), (last, *some), 1) for some in sets)
        winners = [answer.order[0] for answer in answers]
        # A set that does not beat the k-th holds none of the k best, and the k-th only gets better.
        others = tuple(
            docid
            for some, winner in zip(sets, winners, strict=True)
            if winner != last
            for docid in some
            if docid != winner
        )
        for winner in winners:
            if winner != last:
                yield from _insert(winner, best)
                best.pop()


def _insert(docid: str, best: list[str]) -> Steps:
    """Put `docid` into its place in `best` by a binary search over pairs."""
    low, high = 0, len(best)
    while low < high:
        middle = (low + high) // 2
        pair = (best[middle], docid)
        (answer,) = yield (Window(pair, pair, 1),)
        if answer.order[0] == docid:
            high = middle
        else:
            low = middle + 1
    best.insert(low, docid)
