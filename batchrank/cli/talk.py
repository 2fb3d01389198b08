"""What a run says while it works: a bar on a terminal, else one line a minute; all on stderr."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bar

from batchrank.formats.wording import counted, printable
from batchrank.running.progress import Progress

_SECONDS_A_LINE = 60.0
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
                BarColumn(30),
                TaskProgressColumn(),
                TextColumn("{task.fields[told]}", markup=False),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task("", total=None, told="starting")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Print one sentence."""
        if self._logged:
            _log.info("%s", text.strip())
            return
        self._console.print(f"batchrank: {escape(printable(text))}", soft_wrap=True)

    def tick(self, progress: Progress) -> None:
        """Show how far the run is."""
        if self._bar is not None:
            share = progress.share_done
            total = None if share is None else 1.0
            self._bar.update(self._task, total=total, completed=share or 0, told=told(progress))
        elif progress.seconds >= self._next_line:
            self._next_line = progress.seconds + _SECONDS_A_LINE
            self.say(told(progress))


def told(progress: Progress) -> str:
    """One line: queries, windows, fallback rate, tokens a second, time left."""
    tally, spent = progress.tally, progress.spent
    parts = [f"{progress.waits or progress.state}: {progress.told}"]
    if tally.windows:
        parts.append(
            f"{counted(tally.windows, 'window')}, {tally.bad / tally.windows:.1%} fallback"
        )
    if spent.calls and progress.seconds > 0:
        read = spent.usage.prompt_tokens / progress.seconds
        written = spent.usage.completion_tokens / progress.seconds
        parts.append(f"{read:,.0f}+{written:,.0f} tokens/s")
    if progress.capacity:
        parts.append(f"{progress.in_flight}/{progress.capacity} in flight")
    if (left := progress.seconds_left) is not None:
        parts.append(f"{duration(left)} left")
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """Seconds in the largest two units."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
