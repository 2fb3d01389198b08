"""`NAME.summary.json` beside the output: how the latest run ended, for those who come later."""

from __future__ import annotations

import time
from collections.abc import Mapping

import orjson

from batchrank.errors import BatchrankError
from batchrank.formats.atomic import AtomicFile
from batchrank.results.filenames import summary_name
from batchrank.running.report import Report
from batchrank.version import __version__


def write_summary(
    output: str,
    outcome: Report | BatchrankError,
    steps: Mapping[str, str] | None = None,
    exit_code: int | None = None,
) -> None:
    """Replace the summary of `output`, whole or not at all; nothing where the output is a pipe.

    `steps` are those after the run, by name, each in a word, `exit_code` is that of all together.
    Raises DiskError.
    """
    if (name := summary_name(output)) is None:
        return
    told: dict[str, object]
    if isinstance(outcome, Report):
        run = outcome.run
        about = {"input": run.input, "started": run.started, "settings": run.settings}
        told = {**about, **outcome.summary(), "steps": steps or {}}
        told["exit_code"] = outcome.exit_code if exit_code is None else exit_code
    else:
        told = {"exit_code": outcome.exit_code, "reasons": [str(outcome)]}
    document = {"version": __version__, "ended": time.time(), **told}
    with AtomicFile(name) as file:
        file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
