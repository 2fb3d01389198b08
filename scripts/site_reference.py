"""Adds to the site what is written from the code: the command line and the keys of a job spec.

A hook of MkDocs (`hooks` in mkdocs.yml), so that these pages can't differ from the code.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from batchrank.spec.jobspec import JobSpec

HEAD = """# Job spec

A TOML file for `--job FILE`. Keys are flags of [`batchrank run`](cli.md#batchrank-run), with
underscores for dashes; a flag wins over the file. `jobs/nightly.toml` shows all of them with
comments, and `batchrank init` writes one for an input. In names of files `{date}` is the day of the
night ([scheduling](../scheduling.md)).
"""
REFERENCE = re.compile("#/\\$defs/([A-Za-z]+)")
TABLE = "a table of its own"
Schema = Mapping[str, Any]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the two pages; see MkDocs' developer guide on hooks."""
    pages = {"cli.md": _command_line(), "job-spec.md": "\n".join(_job_spec())}
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    return files


def _command_line() -> str:
    typer = (sys.executable, "-m", "typer", "batchrank.cli.app", "utils", "docs")
    made = subprocess.run(
        [*typer, "--name", "batchrank", "--title", "Command line"],
        capture_output=True,
        text=True,
        check=True,
    )
    return f"{made.stdout.strip()}\n"


def _job_spec() -> Iterator[str]:
    schema = JobSpec.model_json_schema()
    yield HEAD
    yield from _table(schema)
    for key, shape in _inner(schema, schema["$defs"]):
        yield f"\n## {key}\n\n{shape['description']}\n"
        yield from _table(shape)
    yield ""


def _inner(shape: Schema, shapes: Schema) -> Iterator[tuple[str, Schema]]:
    """Each key that holds a table or a list of tables, and the shape of these."""
    for key, one in shape["properties"].items():
        for name in REFERENCE.findall(str(one)):
            yield key, shapes[name]
            yield from _inner(shapes[name], shapes)


def _table(shape: Schema) -> Iterator[str]:
    yield "| key | values | default | what it is |"
    yield "|---|---|---|---|"
    for key, one in shape["properties"].items():
        values = _values(one).replace(TABLE, f"[table](#{key})")
        required = key in shape.get("required", ())
        default = "needed" if required else _default(one.get("default"))
        about = str(one.get("description", "")).replace("|", "\\|")
        yield f"| `{key}` | {values} | {default} | {about} |"


def _default(value: object) -> str:
    return "" if value in (None, {}, []) else f"`{str(value).lower()}`"


def _values(one: Schema) -> str:
    """The values that a JSON schema allows, in words."""
    if "anyOf" in one:
        return " or ".join(_values(part) for part in one["anyOf"] if part.get("type") != "null")
    if "$ref" in one:
        return TABLE
    if "enum" in one or "const" in one:
        return " · ".join(f"`{value}`" for value in one.get("enum", [one.get("const")]))
    if one.get("type") == "array":
        return f"list: {_values(one.get('items', {}))}"
    if one.get("type") == "object":
        return "table"
    return f"{one.get('type', 'string')}{_bounds(one)}"


def _bounds(one: Schema) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    given = [f"{sign} {one[name]:,}" for name, sign in signs.items() if name in one]
    return f" {', '.join(given)}" if given else ""
