"""batchrank: rerank query logs overnight with a language model on your own machines.

From a program: `await batchrank.rerank(requests, model=…)`, docs/python.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from batchrank.version import __version__

if TYPE_CHECKING:
    from batchrank.library import JobSpec, RankedDoc, Row, RowError, rerank, rerank_stream
    from batchrank.values import Document, Query, Request

__all__ = [
    "Document",
    "JobSpec",
    "Query",
    "RankedDoc",
    "Request",
    "Row",
    "RowError",
    "__version__",
    "rerank",
    "rerank_stream",
]


def __getattr__(name: str) -> object:
    """Load the library when it is used: the command line and `batchrank.cache` do without it."""
    if name not in __all__:
        raise AttributeError(f"module 'batchrank' has no attribute {name!r}")
    home = "batchrank.values" if name in ("Document", "Query", "Request") else "batchrank.library"
    return getattr(import_module(home), name)
