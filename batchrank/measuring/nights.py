"""What led to the rankings of a run: the runs of its night, and what they took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from batchrank.errors import RejectedError
from batchrank.store.published import SAME_NIGHT_SECONDS, first_alike
from batchrank.store.records import Run
from batchrank.store.spending import Calls, count_gone, read_calls
from batchrank.store.store import Store

_RESULTS = (0, RejectedError.exit_code)
"""How a run exits that came to a result, good or bad."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run of a store cost: `paid` by its night, `kept` from earlier ones.

    Its night is what led to its rankings: see `night_of`. `seconds` is the time on the clock over
    those runs that ended (`killed` did not), None where the run itself did not. Of those before it
    `interrupted` came to no result, `repeated` to the same one. `gone` answers behind its rankings
    were asked anew by a later run (`--fresh`): what they took is in neither.
    """

    paid: Calls
    kept: Calls
    seconds: float | None
    interrupted: int
    killed: int
    repeated: int = 0
    gone: int = 0


async def night_of(store: Store, run: Run) -> list[Run]:
    """The run and the earlier ones that its rankings are owed to, the latest first.

    That is those it went on from, and those of the same night that it only repeats: the same
    command again, after a step that failed or for no reason, pays for nothing and knows nothing.
    """
    runs = await store.runs()
    first = await first_alike(store, run, run.started - SAME_NIGHT_SECONDS, _RESULTS)
    return went_on_from(run, runs, first)


def went_on_from(run: Run, runs: Iterable[Run], first: int) -> list[Run]:
    """The run, those of its job from `first` on, and those that came to no end before.

    They were stopped or killed, failed, found no server, or a step after them failed. What came
    before rankings were begun anew (`--fresh`) has no part in it. In the order of `runs`, the
    latest first.
    """
    night = [run]
    for earlier in runs:
        if earlier.job != run.job or earlier.id >= run.id:
            continue
        is_over = earlier.exit in _RESULTS and earlier.night == earlier.exit
        if earlier.id < first and (is_over or earlier.id < run.fresh_since <= run.id):
            break
        night.append(earlier)
    return night


async def spending_of(store: Store, night: Sequence[Run], answers: Set[int]) -> Spending:
    """What a night took whose rankings rest on these answers. Raises StoreError."""
    run, *before = night
    paid, kept = await read_calls(store, (one.id for one in night), answers)
    ended = [seconds for one in night if (seconds := _seconds(one)) is not None]
    repeated = sum(one.exit in _RESULTS for one in before)
    return Spending(
        paid=paid,
        kept=kept,
        seconds=None if run.ended is None else sum(ended),
        interrupted=len(before) - repeated,
        killed=len(night) - len(ended),
        repeated=repeated,
        gone=await count_gone(store, answers - {0}),
    )


def _seconds(run: Run) -> float | None:
    """From the beginning, before a server is met, to the end; None of one that was killed."""
    if run.ended is None:
        return None
    told = (run.summary or {}).get("seconds")
    return run.ended - run.started if told is None else float(told)
