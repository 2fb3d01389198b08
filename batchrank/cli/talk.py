"""What a run says while it works: a bar on a terminal, else one line a minute; all on stderr."""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import suppress
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar

from batchrank.formats.wording import counted, duration, printable
from batchrank.progress.snapshot import Snapshot

_SECONDS_A_LINE = 60.0
_BETWEEN = " · "
_WIDE = 120
_BAR, _SHORT_BAR = 30, 10
_SHARE = len(" 100% ")
_LEVELS = {
    "warning": logging.WARNING,
    "stopped": logging.WARNING,
    "not begun": logging.WARNING,
    "failed": logging.ERROR,
    "rejected": logging.ERROR,
}
"""By how a sentence begins, perhaps behind the name of a step."""
_log = logging.getLogger(__name__)


class Talk:
    """Use as a context around a run; `say` and `tick` may be called in between.

    With `logged` everything goes to the log in place of the terminal.
    """

    def __init__(self, *, logged: bool = False) -> None:
        self._logged = logged
        self._console = Console(stderr=True, highlight=False)
        self._bar: Bar | None = None
        self._next_line = _SECONDS_A_LINE
        if self._console.is_terminal and not logged:
            self._bar = Bar(
                BarColumn(self._bar_width),
                TaskProgressColumn(),
                TextColumn("{task.fields[told]}", markup=False),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task("", total=None, told="starting")

    @property
    def _bar_width(self) -> int:
        return _BAR if self._console.width >= _WIDE else _SHORT_BAR

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            with suppress(OSError):
                self._bar.stop()

    def say(self, text: str) -> None:
        """Print one sentence; how it begins says how grave it is, to people and in the log."""
        if self._logged:
            said = text.strip()
            grave = (_LEVELS.get(part, logging.INFO) for part in said.split(": ", 2)[:2])
            _log.log(max(grave), "%s", said)
            return
        with suppress(OSError):  # a terminal that is gone is no reason to lose a night
            self._console.print(f"batchrank: {escape(printable(text))}", soft_wrap=True)

    def tick(self, snapshot: Snapshot) -> None:
        """Show how far the run is."""
        # That the job waits was said: there are no lines about quiet hours every minute.
        if (snapshot.state != "ended" and snapshot.quiet_until is None) or self._bar is not None:
            self.show(snapshot.share_done, told(snapshot), snapshot.seconds)

    def show(self, share: float | None, text: str, seconds: float) -> None:
        """Show what share is done after so many seconds, and what is going on."""
        if self._bar is not None:
            total = None if share is None else 1.0
            told = _fitting(text, self._console.width - self._bar_width - _SHARE)
            self._bar.update(self._task, total=total, completed=share or 0, told=told)
        elif seconds >= self._next_line:
            self._next_line = seconds + _SECONDS_A_LINE
            self.say(text)


def told(snapshot: Snapshot) -> str:
    """One line, what matters most first: queries, time left, calls, servers, windows, tokens."""
    parts = [f"{snapshot.activity}: {snapshot.told}"]
    if (left := snapshot.seconds_left) is not None:
        parts.append(f"{duration(left)} left")
    if snapshot.capacity:
        parts.append(f"{snapshot.in_flight}/{snapshot.capacity} in flight")
    if (share := snapshot.share_by_deadline) is not None:
        parts.append(f"{share:.0%} by the deadline")
    if len(snapshot.endpoints) > 1:
        parts.append(_servers(snapshot))
    if (rate := snapshot.fallback_rate) is not None:
        parts.append(f"{counted(snapshot.windows.windows, 'window')}, {rate:.1%} fallback")
    if snapshot.calls:
        rates = snapshot.rates
        parts.append(f"{rates.prompt_tokens:,.0f}+{rates.completion_tokens:,.0f} tokens/s")
    return _BETWEEN.join(parts)


def _fitting(text: str, room: int) -> str:
    """As many whole parts of a line as have room, the first in any case."""
    while len(text) > room and _BETWEEN in text:
        text = text.rpartition(_BETWEEN)[0]
    return text


def _servers(snapshot: Snapshot) -> str:
    health = Counter(one.health for one in snapshot.endpoints)
    bad = "".join(f", {health[kind]} {kind}" for kind in ("resting", "lost") if health[kind])
    return f"{counted(health['well'], 'server')} well{bad}"
