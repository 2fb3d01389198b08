"""The formats that can be written: which a name's ending stands for, and what writes each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from batchrank.formats.encoders import jsons
from batchrank.formats.encoders.base import Encoder, OnceEach
from batchrank.formats.encoders.tables import Delimited, Parquet
from batchrank.formats.encoders.trec import TrecRun
from batchrank.values import OutputFormat

ENDINGS: dict[str, OutputFormat] = {
    ".jsonl": "jsonl",
    ".json": "json",
    ".trec": "trec",
    ".run": "trec",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
_NAMES: dict[OutputFormat, str] = {
    "rankllm": "jsonl",
    "rankllm-json": "json",
    "rankgpt": "json",
    "parquet-nested": "parquet",
}
HOLDS_TEXTS = frozenset(("rankllm", "rankllm-json", "rankgpt"))
"""Formats whose results hold the documents' texts, and so look like queries with candidates."""


def output_format(given: OutputFormat | None, path: str) -> OutputFormat:
    """The format of an output: the one that is given, or as the name ends, or JSONL."""
    plain = path.removesuffix(".rejected").removesuffix(".gz").removesuffix(".zst")
    return given or ENDINGS.get(Path(plain).suffix, "jsonl")


def ending(form: OutputFormat) -> str:
    """How a file in a format is named, without the dot."""
    return _NAMES.get(form, form)


def make_encoder(form: OutputFormat, tag: str) -> Encoder:
    """What writes one file in a format; `tag` is the run's name in TREC runs.

    Raises UsageError where a package is missing.
    """
    if form == "trec":
        return OnceEach(TrecRun(tag), has_status=False)
    return _MAKERS[form]()


_MAKERS: dict[OutputFormat, Callable[[], Encoder]] = {
    "jsonl": lambda: jsons.Lines(jsons.own),
    "json": lambda: jsons.Array(jsons.own),
    "rankllm": lambda: OnceEach(jsons.Lines(jsons.rankllm), has_status=False),
    "rankllm-json": lambda: OnceEach(jsons.Array(jsons.rankllm), has_status=False),
    "rankgpt": lambda: OnceEach(jsons.Array(jsons.rankgpt), has_status=False),
    "csv": lambda: OnceEach(Delimited(","), has_status=True),
    "tsv": lambda: OnceEach(Delimited("\t"), has_status=True),
    "parquet": lambda: OnceEach(Parquet(nested=False), has_status=True),
    "parquet-nested": lambda: Parquet(nested=True),
}
