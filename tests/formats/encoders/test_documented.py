"""Every field and column that is written is explained in the docs."""

from __future__ import annotations

import csv
import io
import re
from typing import Any, get_args

import orjson
import pytest
from pyarrow import parquet

from batchrank.formats.encoders.base import Record
from batchrank.formats.encoders.formats import make_encoder
from batchrank.formats.records import read_entry
from batchrank.formats.rows import FilteredDoc, Invocation, Row, RowError
from batchrank.values import OutputFormat
from tests.cli.conftest import Shell, rows, server, shell, source
from tests.conftest import ROOT

__all__ = ["rows", "server", "shell", "source"]

ENTRY, _ = read_entry(
    orjson.dumps(
        {
            "query": {"qid": "q", "text": "what"},
            "weight": 2,
            "candidates": [
                {"docid": "d", "score": 1.5, "doc": {"title": "T", "text": "t"}}
                | {"embedding": [0.5], "metadata": {"a_key_of_the_user": 1}}
            ],
        }
    )
)
ROW = Row(
    *(
        "q",
        "what",
        "failed",
        [FilteredDoc("d", 1, 1, 1, 0.5, "top")],
        {"ok": 1},
        1,
        9,
        4,
        "m",
        "t@1",
    ),
    error=RowError("kind", "message"),
    line=1,
    reduced=True,
    incremental=True,
    invocations=[Invocation(None, ("d",), "[1]", 9, 4)],
)
OF_THE_USER = {"a_key_of_the_user"}


def names(value: object) -> set[str]:
    """The keys of a JSON value, at any depth."""
    if isinstance(value, list):
        return set().union(*map(names, value))
    if isinstance(value, dict):
        return value.keys() | names(list(value.values()))
    return set()


def columns(schema: Any) -> set[str]:
    """The columns of a Parquet schema, and the fields of its lists of structs."""
    inner = [field.type.value_type for field in schema if hasattr(field.type, "value_type")]
    return set(schema.names).union(
        *({one.field(place).name for place in range(one.num_fields)} for one in inner)
    )


def written(record: Record, form: OutputFormat) -> set[str]:
    """What stands in a file of a format; nothing of a TREC run, whose columns have no names."""
    encoder = make_encoder(form, "tag")
    data = encoder.add(record) + encoder.end()
    if form.startswith("parquet"):
        return columns(parquet.read_schema(io.BytesIO(data)))
    if form in ("csv", "tsv"):
        return set(
            next(csv.reader(data.decode().splitlines(), delimiter="," if form == "csv" else "\t"))
        )
    return set() if form == "trec" else names(orjson.loads(data)) - OF_THE_USER


def explained(*pages: str) -> set[str]:
    """The words that stand as code in these pages."""
    text = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"\w+", " ".join(re.findall(r"`+[^`]+`+|^    .*$", text, re.MULTILINE))))


@pytest.mark.parametrize("form", get_args(OutputFormat))
def test_every_field_of_an_output_is_explained(form: OutputFormat) -> None:
    found = written(ROW, form)
    assert form == "trec" or {"qid", "docid"} <= found
    assert found <= explained("output.md")


@pytest.mark.parametrize("form", get_args(OutputFormat))
def test_every_field_of_a_converted_input_is_explained(form: OutputFormat) -> None:
    found = written(ENTRY, form)
    assert form == "trec" or {"qid", "docid", "score"} <= found
    assert found <= explained("output.md", "input.md")


def test_every_field_of_a_summary_is_explained(shell: Shell, source: Any) -> None:
    assert shell.run(source).code == 0
    summary = orjson.loads((shell.folder / "in.ranked.jsonl.summary.json").read_bytes())
    assert len(summary) > 20
    assert summary.keys() <= explained("monitoring.md")
