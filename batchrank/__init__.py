"""batchrank: rerank query logs overnight with a language model on your own machines.

From a program: `await batchrank.rerank(requests, model=…)`, docs/python.md.
"""

from __future__ import annotations

from batchrank.version import __version__

TYPE_CHECKING = False
"""Of type checkers taken for `typing`'s, which is long to load: Ctrl-C is not quiet before."""

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
    from importlib import import_module  # noqa: PLC0415 - as above

    home = "batchrank.values" if name in ("Document", "Query", "Request") else "batchrank.library"
    return getattr(import_module(home), name)
