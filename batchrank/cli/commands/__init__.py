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
class Command:
    """The function of a command, or the Typer of a group of them, by `module:name`."""

    panel: str
    target: str


COMMANDS: Mapping[str, Command] = {
    "run": Command(RUN, "batchrank.cli.commands.run:run"),
    "check": Command(RUN, "batchrank.cli.commands.check:check"),
    "convert": Command(RUN, "batchrank.cli.commands.convert:convert_command"),
    "doctor": Command(RUN, "batchrank.cli.commands.check:doctor"),
    "init": Command(RUN, "batchrank.cli.commands.init:init"),
    "systemd-unit": Command(RUN, "batchrank.cli.commands.systemd_unit:systemd_unit"),
    "unfinished": Command(RUN, "batchrank.cli.commands.unfinished:unfinished"),
    "status": Command(LOOK, "batchrank.cli.commands.status:status"),
    "watch": Command(LOOK, "batchrank.cli.commands.watch:watch"),
    "inspect": Command(LOOK, "batchrank.cli.commands.inspect:inspect"),
    "report": Command(LOOK, "batchrank.cli.commands.report:report"),
    "export": Command(LOOK, "batchrank.cli.commands.export:export"),
    "template": Command(LOOK, "batchrank.cli.commands.template:app"),
    "eval": Command(MEASURE, "batchrank.cli.commands.measure:evaluate_command"),
    "compare": Command(MEASURE, "batchrank.cli.commands.measure:compare_command"),
    "diagnose": Command(CHOOSE, "batchrank.cli.commands.tune:diagnose_command"),
    "tune": Command(CHOOSE, "batchrank.cli.commands.tune:tune_command"),
    "label": Command(CHOOSE, "batchrank.cli.commands.label:label_command"),
    "publish": Command(PUBLISH, "batchrank.cli.commands.publish:publish"),
    "backup": Command(MAINTAIN, "batchrank.cli.commands.maintain:backup"),
    "merge-stores": Command(MAINTAIN, "batchrank.cli.commands.maintain:merge_stores"),
    "gc": Command(MAINTAIN, "batchrank.cli.commands.maintain:gc"),
}
"""In the order of `--help`. A command's module is loaded when the command is called."""
