"""Structured logs: one JSON object a line on stderr, with what the event is about.

Modules log through the standard library, as `logging.getLogger(__name__)`. The job, the query and
the window that a task works on are kept in a context variable, so that no function passes them on;
tasks started by a task inherit them. What a record is given by `extra` (say, `endpoint`) is added.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

import orjson

# Without a handler Python would print warnings by itself, between the lines of a progress bar.
logging.getLogger("batchrank").addHandler(logging.NullHandler())

FIELDS = ("job", "run", "qid", "window", "endpoint", "reason", "answer")
"""What a line may be about, beside `time`, `level`, `event` and `source`."""

_about: ContextVar[Mapping[str, object]] = ContextVar("about", default={})  # noqa: B039 - not changed


def about(**fields: str | int) -> None:
    """Let all that this task and those it starts log from now on say what it is about."""
    _about.set({**_about.get(), **fields})


def about_window(place: int) -> None:
    """Let this task say that it is about the window at `place` of a round.

    The number of the round's first window is what the task that started it is about.
    """
    first = _about.get().get("window", 1)
    about(window=first + place if isinstance(first, int) else place)


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; a field that does not apply is left out."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        given = {name: record.__dict__[name] for name in FIELDS if name in record.__dict__}
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "source": record.name,
            **_about.get(),
            **given,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        # Control characters come out as escapes; a lone surrogate is written as a question mark.
        try:
            return orjson.dumps(line).decode()
        except orjson.JSONEncodeError:
            safe = {
                key: str(value).encode(errors="replace").decode() for key, value in line.items()
            }
            return orjson.dumps(safe).decode()


@contextmanager
def json_logs() -> Iterator[None]:
    """Write all that batchrank logs, from INFO up, to stderr as JSON, and nothing else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("batchrank")
    level, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates
