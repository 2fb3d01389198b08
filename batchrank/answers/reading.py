"""Says what an answer names, and settles what was found in it into a reading with a status."""

from __future__ import annotations

from dataclasses import dataclass

from batchrank.values import Status

_BEYOND = 10**9
"""Stands for any number too long to be an identifier."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer names: 1-based identifiers, unique, in range, best first.

    `notes` are short stable words. For a repaired answer they say what was repaired:

    missing       fewer named than wanted          extra         more named than wanted
    repeated      the first mention counts         out-of-range  numbers of no document, dropped
    format        not one of the strict forms      cut           it ended early, or a limit ended it
    scores        ordered by its scores            reversed      written worst first, with `<`
    zero-based    it counted from 0                several       one of several rankings in it
    in-reasoning  it stood in the reasoning

    For a fallback the one note is the reason: empty, unfinished-reasoning, refusal, echo (of the
    prompt), ambiguous, out-of-range, no-ranking.
    """

    named: tuple[int, ...]
    status: Status
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What one way of reading found: numbers as they stand in the answer, best first.

    Without numbers it is a failure, and the first note its reason.
    """

    numbers: tuple[int, ...]
    notes: tuple[str, ...] = ()


def failed(reason: str) -> Found:
    """Return that nothing usable was found, and why."""
    return Found((), (reason,))


def integer(digits: str) -> int:
    """Convert a run of digits of any length to an integer, in constant time for absurd ones."""
    return int(digits) if len(digits) <= 9 else _BEYOND


def fallback(reason: str) -> Reading:
    """Return the reading of an unusable answer."""
    return Reading((), Status.FALLBACK, (reason,))


def settle(found: Found, documents: int, wanted: int) -> Reading:
    """Drop repeats and numbers out of range, and note every repair."""
    if not found.numbers:
        return fallback(found.notes[0])
    notes = list(found.notes)
    numbers = tuple(dict.fromkeys(found.numbers))
    if len(numbers) < len(found.numbers):
        notes.append("repeated")
    if 0 in numbers:
        # Only the full set 0..n-1 counts from 0 for sure, and only n that it does not.
        if set(numbers) == set(range(documents)):
            numbers = tuple(number + 1 for number in numbers)
            notes.append("zero-based")
        elif documents not in numbers:
            return fallback("ambiguous")
    named = tuple([number for number in numbers if 1 <= number <= documents])
    if not named:
        return fallback("out-of-range")
    if len(named) < len(numbers):
        notes.append("out-of-range")
    if len(named) != wanted:
        notes.append("missing" if len(named) < wanted else "extra")
    return Reading(named, Status.REPAIRED if notes else Status.OK, tuple(dict.fromkeys(notes)))
