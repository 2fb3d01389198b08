"""Tonight's order from an earlier one: only what is new is asked about, among the earlier best.

New documents meet the earlier best in a window. Those that come out above all of these meet the
next better ones, and so on up: an insertion sort in windows. With a perfect judge and an earlier
order whose best are right, the best `top` are right again, however small the windows are. What the
model said of the earlier best counts as an opinion beside what it says now. All others keep the
earlier order and are not looked at again: that is the price, and why rankings must not rest on
earlier ones for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace

from batchrank.strategies.base import Asking, Plan, Round, Strategy, through
from batchrank.strategies.opinions import reconciled
from batchrank.values import Lineage, Permutation, Ranking


@dataclass(frozen=True, slots=True)
class Merging:
    """How a job merges new documents into an earlier order.

    `in_one(n)` ranks a list that fits one window of `window_size` documents, at least 2, and has
    its best n named. The best `top` are to be right. The windows are those of stage `stage`.
    """

    window_size: int
    top: int
    in_one: Callable[[int], Strategy]
    stage: int = 0


def delta(merging: Merging, earlier: Ranking) -> Strategy:
    """Make the strategy: `earlier` holds the documents that are as they were, in their last order.

    All others of the first stage are new; they come half a window at a time at most. Those that
    lose against the earlier best stand behind these where the first stage has them; those of which
    no answer says anything stand last. Where nothing is new, nothing is asked.
    """

    def plan(first_stage: Ranking) -> Plan:
        rank = {docid: position for position, docid in enumerate(first_stage)}
        known = frozenset(earlier)
        new = tuple(docid for docid in first_stage if docid not in known)
        count = -(-len(new) // (merging.window_size // 2))
        order = earlier
        unheard: Ranking = ()
        for number in range(count):
            order, more = yield from _merged(merging, rank, order, new[number::count])
            unheard += more
        return order + unheard

    return plan


def building_on(
    lineage: Lineage | None, strategy: Strategy, merging: Merging, docids: Ranking
) -> Strategy:
    """How `docids`, the candidates in first-stage order, are ranked: as ever, or from `lineage`."""
    if lineage is None or not lineage.run:
        return strategy
    return delta(merging, tuple(docids[place] for place in lineage.earlier))


def _merged(
    merging: Merging, rank: Mapping[str, int], order: Ranking, new: Ranking
) -> Generator[Round, Sequence[Permutation], tuple[Ranking, Ranking]]:
    """`order` with `new` in it, and what of `new` found no place since no answer came."""
    size = merging.window_size
    end = max(merging.top, size - len(new))
    above, below = order[:end], order[end:]
    settled: Ranking = ()
    climbing = new
    while climbing:
        start = max(0, len(above) - (size - len(climbing)))
        block = above[start:]
        # What an answer is silent about has not beaten the earlier best.
        believed = block + climbing
        pool = tuple(sorted(believed, key=rank.__getitem__))
        heard: list[bool] = []
        plan = merging.in_one(merging.top - start)(pool)
        merged = yield from through(plan, _believing(believed, merging.stage, heard))
        if not settled and not any(heard):
            return order, new
        merged = reconciled(merged, (block,), pool)
        passed = min(map(merged.index, block)) if start else 0
        above, climbing, settled = above[:start], merged[:passed], merged[passed:] + settled
    ranked = above + settled
    if not below:
        return ranked, ()
    worst = max(map(ranked.index, order[:end])) + 1
    whole = [*ranked[:worst], *below]
    for docid in sorted(ranked[worst:], key=rank.__getitem__):
        whole.insert(max(rank[docid], worst), docid)
    return tuple(whole), ()


def _believing(order: Ranking, stage: int, heard: list[bool]) -> Callable[[Round], Asking]:
    """Ask for `stage`, with `order` where an answer is silent; `heard` gets whether any is not."""
    place = {docid: position for position, docid in enumerate(order)}

    def ask(windows: Round) -> Asking:
        answers = yield tuple(
            replace(window, prior=tuple(sorted(window.prior, key=place.__getitem__)), stage=stage)
            for window in windows
        )
        heard.append(any(answer.named for answer in answers))
        return answers

    return ask
