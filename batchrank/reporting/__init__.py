"""The report of a run as one page: facts from its store, charts, markup."""

from batchrank.reporting.writing import write_report

__all__ = ["write_report"]
