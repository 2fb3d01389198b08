"""Loads prompt templates: TOML files, built in or one's own, checked before anything is asked."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from batchrank.errors import UsageError
from batchrank.hints import meant
from batchrank.prompts.proof import prove
from batchrank.prompts.sandbox import TextError, compiled
from batchrank.prompts.template import OFFERED, Kind, Template, text_error

USUAL_WINDOW = 20
"""Documents in a prompt, where no job says how many."""
_KEYS: Mapping[str, tuple[type, ...]] = {
    "name": (str,),
    "version": (int, float, str),
    "kind": (str,),
    "language": (str,),
    "text": (str,),
    "examples": (list,),
}
_NEEDED = ("name", "version", "text")
_MOST_BYTES = 1_000_000
_BUILT_IN = resources.files("batchrank.prompts") / "templates"


def built_in_names() -> list[str]:
    """Names that `load_template` takes without a path."""
    return sorted(entry.name.removesuffix(".toml") for entry in _BUILT_IN.iterdir())


def load_template(name: str, kind: Kind | None = "direct", most: int = USUAL_WINDOW) -> Template:
    """Load a built-in template by name, or one's own by path; UsageError says what is wrong.

    It must be of `kind` (None for any), and prompts of up to `most` documents must show all that
    they should. A file that names no kind is "direct".
    """
    template = _parse(name, template_source(name))
    if kind is not None and template.kind != kind:
        raise UsageError(
            f"{template.where} is of kind {template.kind!r} and this job needs one of {kind!r}"
        )
    prove(template, most)
    return template


def template_source(name: str) -> str:
    """The TOML of a built-in template, or of a file; UsageError where there is neither."""
    if name in built_in_names():
        return (_BUILT_IN / f"{name}.toml").read_text(encoding="utf-8")
    try:
        with Path(name).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"template {name!r} is neither built in ({', '.join(built_in_names())}) "
            f"nor a readable file: {error}"
        ) from error


def _parse(path: str, source: str) -> Template:
    where = f"template {path!r}"
    try:
        fields = tomllib.loads(source)
    # A ValueError of Python's own for a number of thousands of digits.
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no TOML: {error}") from error
    _check_fields(where, fields)
    kind: Kind = fields.get("kind", "direct")
    if kind not in get_args(Kind):
        raise UsageError(
            f"{where}: its kind is {kind!r} and not one of {', '.join(get_args(Kind))}"
        )
    first_line = _first_line(source)
    try:
        text = compiled(fields["text"], OFFERED[kind], tuple(fields.get("examples", ())))
    except TextError as error:
        raise text_error(where, first_line, error) from error
    return Template(
        f"{fields['name']}@{fields['version']}",
        hashlib.sha256(source.encode()).hexdigest(),
        kind,
        fields.get("language", ""),
        text,
        path,
        first_line,
    )


def _check_fields(where: str, fields: Mapping[str, Any]) -> None:
    for key in fields:
        if key not in _KEYS:
            raise UsageError(f"{where}: unknown key {key!r}{meant(key, _KEYS)}")
    for key in _NEEDED:
        if key not in fields:
            raise UsageError(f"{where} needs {key!r}")
    for key, value in fields.items():
        if not isinstance(value, _KEYS[key]) or isinstance(value, bool):
            raise UsageError(f"{where}: {key} can't be {value!r}")
    if not fields["name"].strip() or not fields["name"].isprintable():
        raise UsageError(f"{where}: name can't be {fields['name']!r}")


def _first_line(source: str) -> int:
    """The line of a TOML file in which the value of its key `text` starts."""
    found = re.search(
        r"^[ \t]*[\"']?text[\"']?[ \t]*=[ \t]*(?:(?:\"{3}|'{3})\r?\n)?", source, re.MULTILINE
    )
    return source.count("\n", 0, found.end()) + 1 if found else 1
