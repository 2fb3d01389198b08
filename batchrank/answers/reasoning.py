"""Takes a model's reasoning out of its answer, so that no thought is read as a ranking."""

from __future__ import annotations

import re

_NAMES = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reason|analysis|scratchpad|reflection)"
_TAG = re.compile(
    rf"(?P<open><\s?{_NAMES}\s?>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|START_THINKING\|>"
    r"|<\|channel>thought)"
    rf"|<\s?/\s?{_NAMES}\s?>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>|<channel\|>",
    re.IGNORECASE,
)
_CHANNEL = "<|channel|>"
_MESSAGE = "<|message|>"
_BARE_ANALYSIS = re.compile(r"\s*analysis(?=[A-Z])")
"""Harmony whose special tokens were dropped: `analysisWe need … assistantfinal[1] > …`."""
_BARE_FINAL = "assistantfinal"


def without_reasoning(text: str) -> tuple[str, bool]:
    """Return the answer that is left, and whether reasoning began and never ended.

    Between an opening and the next closing tag is reasoning; so is everything before a closing tag
    that nothing opened (the template did), and everything after an opening tag that nothing closes.
    Of harmony channels only `final` is the answer.
    """
    if _CHANNEL in text:
        return _final_channel(text)
    if _BARE_ANALYSIS.match(text):
        _, found, final = text.rpartition(_BARE_FINAL)
        return (final, False) if found else ("", True)
    kept: list[str] = []
    start: int | None = 0
    for tag in _TAG.finditer(text):
        if tag["open"] and start is not None:
            kept.append(text[start : tag.start()])
            start = None
        elif not tag["open"]:
            if start is not None:
                kept.clear()
            start = tag.end()
    if start is not None:
        kept.append(text[start:])
    return "\n".join(kept), start is None


def _final_channel(text: str) -> tuple[str, bool]:
    """Return the last message of the final channel."""
    for part in reversed(text.split(_CHANNEL)[1:]):
        name, found, message = part.partition(_MESSAGE)
        if found and name.strip().startswith("final"):
            return message, False
    return "", True
