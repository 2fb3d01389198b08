"""Makes a job's spec from a TOML file and flags, and loads the templates it names."""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import ValidationError

from batchrank.errors import UsageError
from batchrank.prompts.loading import load_template
from batchrank.prompts.template import NO_TEMPLATE, Template
from batchrank.spec.complaints import Given, complaint, unreadable_text
from batchrank.spec.dates import check_placeholders, dated, read_names
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.publishspec import PublishSpec
from batchrank.spec.stagespec import USED
from batchrank.spec.tables import check_tables, read_toml

Templates = tuple[Template, ...]
"""One a stage."""


def load_templates(spec: JobSpec) -> Templates:
    """The templates of a job's stages; UsageError says what is wrong with one."""
    return tuple(
        NO_TEMPLATE
        if stage.template_name is None or stage.reader.kind is None
        else load_template(stage.template_name, stage.reader.kind, stage.largest_window)
        for stage in spec.stages
    )


def load_spec(path: Path | None, flags: Mapping[str, object], day: date | None = None) -> JobSpec:
    """The spec of a TOML file (None for no file) overridden by flags that were given.

    `day` is what `{date}` stands for in names of files, by default today.
    Raises UsageError, naming the key, for an unreadable file, an unknown key, a bad value or a flag
    that would do nothing.
    """
    values: dict[str, object] = {}
    where = ""
    if path is not None:
        values = read_toml(path, "job spec")
        where = f"job spec {path}"
        check_tables(values, JobSpec, where)
        check_placeholders(values, where)
    if flags.get("base_url"):
        values.pop("endpoint", None)
    given = {name: value for name, value in flags.items() if value is not None}
    night = day or datetime.now(UTC).astimezone().date()
    spec = make_spec(read_names(values, night) | dated(given, night), given, where)
    if (unused := _unused(spec, given)) is not None:
        raise UsageError(unused)
    return spec


def _unused(spec: JobSpec, flags: Container[str]) -> str | None:
    """What is wrong with the first of `flags` that would change nothing; None where none is.

    A job spec may hold such settings: a flag, or `tune`, chose another strategy.
    """
    names = dict.fromkeys(itertools.chain.from_iterable(USED.values()))
    for name in names:
        if name in flags and spec.stage is None and name not in USED[spec.strategy]:
            users = ", ".join(strategy for strategy in USED if name in USED[strategy])
            return (
                f"--{name.replace('_', '-')} does nothing with strategy {spec.strategy}: leave it "
                f"out, or choose one of {users}"
            )
    if "normalise" in flags and spec.alpha == 1:
        return "--normalise does nothing without --alpha below 1: add it, or leave this out"
    for name in ("incremental_max_change", "incremental_max_age"):
        if name in flags and not spec.incremental:
            return f"--{name.replace('_', '-')} does nothing without --incremental: add it"
    return None


def make_publish_spec(values: Mapping[str, object], flags: Container[str]) -> PublishSpec:
    """The settings of a publication; UsageError names the one whose value can't be used."""
    if wrong := unreadable_text(values, flags):
        raise UsageError(wrong)
    try:
        return PublishSpec.model_validate(values)
    except ValidationError as error:
        raise UsageError(complaint(error, flags)) from error


def make_spec(values: Mapping[str, object], flags: Container[str] = (), where: str = "") -> JobSpec:
    """The spec with these keys; UsageError names the one, or its flag, whose value can't be used.

    `flags` are the keys that were given as flags; `where` names the file of the others.
    """
    return JobSpec.model_validate(values, context=Given(flags, where))
