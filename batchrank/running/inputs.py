"""Where the queries of a job come from."""

from __future__ import annotations

from batchrank.formats.sources.source import Source
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.shard import parse_shard


def source_of(spec: JobSpec, path: str) -> Source:
    """The input at `path` (`-` for stdin), with the files that the job says belong to it."""
    shard = parse_shard(spec.shard) if spec.shard else None
    return Source(path, spec.format, spec.corpus, spec.topics, spec.run_file, shard=shard)
