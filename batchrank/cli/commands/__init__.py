"""The commands by name, and the group that `--help` lists each in; one file a group of commands."""

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
    "run": Place(RUN, "batchrank.cli.commands.run:run"),
    "check": Place(RUN, "batchrank.cli.commands.check:check"),
    "convert": Place(RUN, "batchrank.cli.commands.convert:convert_command"),
    "doctor": Place(RUN, "batchrank.cli.commands.check:doctor"),
    "init": Place(RUN, "batchrank.cli.commands.init:init"),
    "systemd-unit": Place(RUN, "batchrank.cli.commands.systemd_unit:systemd_unit"),
    "unfinished": Place(RUN, "batchrank.cli.commands.unfinished:unfinished"),
    "status": Place(LOOK, "batchrank.cli.commands.status:status"),
    "watch": Place(LOOK, "batchrank.cli.commands.watch:watch"),
    "inspect": Place(LOOK, "batchrank.cli.commands.inspect:inspect"),
    "report": Place(LOOK, "batchrank.cli.commands.report:report"),
    "export": Place(LOOK, "batchrank.cli.commands.export:export"),
    "template": Place(LOOK, "batchrank.cli.commands.template:app"),
    "eval": Place(MEASURE, "batchrank.cli.commands.measure:evaluate_command"),
    "compare": Place(MEASURE, "batchrank.cli.commands.measure:compare_command"),
    "diagnose": Place(CHOOSE, "batchrank.cli.commands.tune:diagnose_command"),
    "tune": Place(CHOOSE, "batchrank.cli.commands.tune:tune_command"),
    "label": Place(CHOOSE, "batchrank.cli.commands.label:label_command"),
    "publish": Place(PUBLISH, "batchrank.cli.commands.publish:publish"),
    "backup": Place(MAINTAIN, "batchrank.cli.commands.maintain:backup"),
    "merge-stores": Place(MAINTAIN, "batchrank.cli.commands.maintain:merge_stores"),
    "gc": Place(MAINTAIN, "batchrank.cli.commands.maintain:gc"),
}
"""In the order of `--help`. A command's module is loaded when the command is called."""
