"""The commands by name: where each is defined, and the group that `--help` lists it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RUN = "Run"
LOOK = "Look"
MEASURE = "Measure"
CHOOSE = "Choose"
PUBLISH = "Publish"
MAINTAIN = "Maintain"


@dataclass(frozen=True, slots=True)
class Place:
    """The function of a command, or the Typer of a group of them, by `module:name`."""

    panel: str
    target: str


COMMANDS: Mapping[str, Place] = {
    "run": Place(RUN, "batchrank.cli.run:run"),
    "check": Place(RUN, "batchrank.cli.check:check"),
    "convert": Place(RUN, "batchrank.cli.convert:convert_command"),
    "doctor": Place(RUN, "batchrank.cli.check:doctor"),
    "init": Place(RUN, "batchrank.cli.start:init"),
    "systemd-unit": Place(RUN, "batchrank.cli.schedule:systemd_unit"),
    "status": Place(LOOK, "batchrank.cli.look:status"),
    "watch": Place(LOOK, "batchrank.cli.watch:watch"),
    "inspect": Place(LOOK, "batchrank.cli.inspect:inspect"),
    "report": Place(LOOK, "batchrank.cli.report:report"),
    "export": Place(LOOK, "batchrank.cli.look:export"),
    "template": Place(LOOK, "batchrank.cli.template:app"),
    "eval": Place(MEASURE, "batchrank.cli.measure:evaluate_command"),
    "compare": Place(MEASURE, "batchrank.cli.measure:compare_command"),
    "diagnose": Place(CHOOSE, "batchrank.cli.tune:diagnose_command"),
    "tune": Place(CHOOSE, "batchrank.cli.tune:tune_command"),
    "label": Place(CHOOSE, "batchrank.cli.label:label_command"),
    "publish": Place(PUBLISH, "batchrank.cli.publish:publish"),
    "backup": Place(MAINTAIN, "batchrank.cli.keep:backup"),
    "merge-stores": Place(MAINTAIN, "batchrank.cli.keep:merge_stores"),
    "gc": Place(MAINTAIN, "batchrank.cli.keep:gc"),
}
"""In the order of `--help`. A command's module is loaded when the command is called."""
