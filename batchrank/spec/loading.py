"""Makes a job's spec from a TOML file and flags, and loads the templates it names."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Container, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

from batchrank.errors import UsageError
from batchrank.prompts.template import NO_TEMPLATE, Template, load_template
from batchrank.spec.complaints import complaint
from batchrank.spec.dating import dated
from batchrank.spec.jobspec import Cost, JobSpec
from batchrank.spec.selectionspec import FilterSpec
from batchrank.spec.stagespec import StageSpec

Templates = tuple[Template, ...]
"""One a stage."""


def load_templates(spec: JobSpec) -> Templates:
    """The templates of a job's stages; UsageError says what is wrong with one."""
    return tuple(
        NO_TEMPLATE
        if stage.template_name is None or stage.reader.kind is None
        else load_template(stage.template_name, stage.reader.kind)
        for stage in spec.stages
    )


def load_spec(path: Path | None, flags: Mapping[str, object], day: date | None = None) -> JobSpec:
    """The spec of a TOML file (None for no file) overridden by flags that were given.

    `day` is what `{date}` stands for in names of files, by default today.
    Raises UsageError, naming the key, for an unreadable file, an unknown key or a bad value.
    """
    values: dict[str, object] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"job spec {path} can't be read: {error}") from error
    where = f"job spec {path}" if path is not None else "the flags"
    _refuse_unknown(values, JobSpec, where)
    for name, shape in (("cost", Cost), ("filter", FilterSpec)):
        if isinstance(table := values.get(name), dict):
            _refuse_unknown(table, shape, f"{where}, [{name}]")
    if isinstance(stages := values.get("stage"), list):
        for stage in stages:
            if isinstance(stage, dict):
                _refuse_unknown(stage, StageSpec, f"{where}, [[stage]]")
    if flags.get("base_url"):
        values.pop("endpoint", None)
    given = {name: value for name, value in flags.items() if value is not None}
    today = datetime.now(UTC).astimezone().date()
    return make_spec(dated(values | given, day or today), given)


def make_spec(values: Mapping[str, object], flags: Container[str] = ()) -> JobSpec:
    """The spec with these keys; UsageError names the one, or its flag, whose value can't be used.

    `flags` are the keys that were given as flags.
    """
    try:
        return JobSpec.model_validate(values)
    except ValidationError as error:
        raise UsageError(complaint(error, flags)) from error


def _refuse_unknown(values: Mapping[str, object], shape: type[BaseModel], where: str) -> None:
    """Refuse a key that `shape` has no field for, and name the nearest that it has."""
    known = list(shape.model_fields)
    for key, value in values.items():
        if key not in known:
            if isinstance(value, dict):
                raise UsageError(
                    f"{where}: unknown section [{key}]; settings stand at the top, in no section"
                )
            near = difflib.get_close_matches(key.replace("-", "_"), known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{where}: unknown key {key!r}{hint}")
