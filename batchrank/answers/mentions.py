"""Judges by the words around identifiers whether they are a ranking or only mentioned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from batchrank.answers.lexing import Kind
from batchrank.answers.reading import Found, failed
from batchrank.answers.sequences import Run

_NEGATIVE = re.compile(
    r"\b(?:not|no|none|neither|nor|never|cannot|least|worst|irrelevant|unrelated|without|unable)\b"
    r"|n['’]t\b|不|无关|無關|没有|沒有|无法|無法|最低|最差",
    re.IGNORECASE,
)
_BEST_FIRST = re.compile(
    r"\b(?:most|best|top|highest|rank\w*|order\w*|sort\w*|final\w*|answers?)\b"
    r"|最相关|最佳|最好|最高|排序|排名|顺序|排列|结果|最终|高到低",
    re.IGNORECASE,
)
_WORST_FIRST = re.compile(
    r"\bleast\b.{0,60}\bmost\b|\bworst\b.{0,60}\bbest\b|\bascending\b|\blow(?:est)? to high"
    r"|低到高",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。\n]")
_LETTER = re.compile(r"[^\W\d_]")
_REACH = 200
"""Characters of a sentence that are looked at on each side of identifiers."""


def is_announced(text: str, run: Run) -> bool:
    """Tell whether words such as "the ranking is" lead to a run."""
    return bool(_BEST_FIRST.search(_lead(text, run)))


def sentences(text: str, found: Sequence[Run], strongest: Kind) -> list[list[Run]]:
    """Group runs that prose joins in one sentence; arrows and bare numbers stand by themselves."""
    groups: list[list[Run]] = []
    for run in found:
        previous = groups[-1][-1] if groups else None
        apart = (
            previous is None
            or strongest is Kind.NUMBER
            or previous.has_arrows
            or run.has_arrows
            or _SENTENCE_END.search(text, previous.end, run.start)
        )
        if apart:
            groups.append([run])
        else:
            groups[-1].append(run)
    return groups


def judge(text: str, group: Sequence[Run], strongest: Kind, *, cut: bool) -> Found:
    """Accept a sentence's runs as a ranking, or say why not."""
    first, last = group[0], group[-1]
    lead, tail = _lead(text, first), _tail(text, last)
    if (first.more and first.less) or (first.less and cut):
        # Written worst first and cut, the best are the ones that are lost.
        return failed("ambiguous")
    if (first is last and first.is_range) or _WORST_FIRST.search(lead):
        return failed("no-ranking")
    if strongest is Kind.NUMBER:
        if any(item.pair is not None for item in first.items):
            return failed("ambiguous")
        accepted = first is last and _bare_stands(text, first, lead, tail)
    elif first is last:
        accepted = first.has_arrows or _named_stands(
            first, lead, tail, strongest, starts_line=not _LETTER.search(_line(text, first))
        )
    else:
        return _in_prose(text, group, lead)
    if not accepted:
        return failed("no-ranking")
    return Found(first.numbers[::-1], ("reversed",)) if first.less else Found(first.numbers)


def _named_stands(run: Run, lead: str, tail: str, strongest: Kind, *, starts_line: bool) -> bool:
    """Tell whether identifiers that no arrow joins are a ranking."""
    several = len(run.numbers) > 1
    if _NEGATIVE.search(lead):
        return False
    if _BEST_FIRST.search(lead) and several:
        return True
    if _NEGATIVE.search(tail):
        return False
    if _BEST_FIRST.search(lead) or _BEST_FIRST.search(tail):
        return True
    if several or not tail:
        return not tail and (several or not lead)
    return strongest is Kind.BRACKET and starts_line


def _in_prose(text: str, group: Sequence[Run], lead: str) -> Found:
    """Read "the best is [3], while [1] …": announced as best first, up to the first "not"."""
    between = [text[a.end : b.start][:_REACH] for a, b in pairwise(group)]
    announced = _BEST_FIRST.search(lead) or _BEST_FIRST.search(between[0])
    if _NEGATIVE.search(lead) or not announced:
        return failed("no-ranking")
    kept = len(group)
    for place, words in enumerate(between):
        if _NEGATIVE.search(words):
            # It may be said of what stands before it as well as of what follows.
            kept = max(place, 1)
            break
    return Found(tuple(number for run in group[:kept] for number in run.numbers))


def _bare_stands(text: str, run: Run, lead: str, tail: str) -> bool:
    """Tell whether bare numbers are a ranking: alone on their line, or announced and the end."""
    if run.has_arrows and (len(run.numbers) > 2 or not (lead and tail)):
        return True
    if tail or _NEGATIVE.search(lead):
        return False
    if len(run.numbers) == 1:
        # A number is an answer only if it is all of it, but for a mark such as a full stop.
        return len(text) - (run.end - run.start) <= 2
    return not lead or lead.rstrip().endswith(":") or bool(_BEST_FIRST.search(lead))


def _lead(text: str, run: Run) -> str:
    """Return the words of the sentence in front of a run, "" where there are none."""
    before = text[max(0, run.start - _REACH) : run.start]
    *_, part = _SENTENCE_END.split(before)
    return part if _LETTER.search(part) else ""


def _line(text: str, run: Run) -> str:
    """Return what stands in front of a run on its line."""
    return text[max(0, run.start - _REACH) : run.start].rpartition("\n")[2]


def _tail(text: str, run: Run) -> str:
    """Return the words that follow a run in its sentence, "" where there are none."""
    part = _SENTENCE_END.split(text[run.end : run.end + _REACH], maxsplit=1)[0]
    return part if _LETTER.search(part) else ""
