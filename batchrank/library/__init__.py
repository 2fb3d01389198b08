"""Reranking from a Python program: requests in, rows out, with a store and all guarantees."""

from batchrank.formats.rows import RankedDoc, Row, RowError
from batchrank.library.rerank import rerank, rerank_stream
from batchrank.spec.jobspec import JobSpec

__all__ = ["JobSpec", "RankedDoc", "Row", "RowError", "rerank", "rerank_stream"]
