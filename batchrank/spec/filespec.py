"""The settings that say what a job reads and where it writes."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, model_validator

from batchrank.spec.fields import MOST, Whole
from batchrank.spec.shard import parse_shard
from batchrank.values import InputFormat, OutputFormat


class FileSpec(BaseModel):
    """Files, their formats, and which lines of the input are ranked: part of a job's settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # A file's name need not be UTF-8, which pydantic would have of a `str`.
    input: InstanceOf[str] | None = Field(default=None, description="Input file; - for stdin.")
    output: InstanceOf[str] | None = Field(default=None, description="Output file; - for stdout.")
    store: Path = Field(
        default=Path("batchrank.sqlite"), description="SQLite store of all checkpoints."
    )
    output_format: OutputFormat | None = Field(
        default=None, description="Format of the output (default: by its ending, or jsonl)."
    )
    format: InputFormat | None = Field(
        default=None, description="Format of the input (default: as its first bytes say)."
    )
    corpus: Path | None = Field(
        default=None, description="Documents of a TREC run: JSONL, or TSV of docid and text."
    )
    topics: Path | None = Field(
        default=None, description="Queries of a TREC run: JSONL, or TSV of qid and text."
    )
    run_file: Path | None = Field(
        default=None, description="TREC run of the first stage, for a BEIR folder."
    )
    limit: Whole | None = Field(
        default=None, ge=1, le=MOST, description="Read only the first N lines."
    )
    shard: str | None = Field(
        default=None, description="Rank only part i of n, from 0/n to n−1/n (docs/scaling.md)."
    )

    @model_validator(mode="after")
    def _check_shard(self) -> FileSpec:
        if self.shard is not None:
            parse_shard(self.shard)
        return self
