"""The report of a run as one page: facts from its store, charts, markup."""

from batchrank.reporting.gathering import Wanted
from batchrank.reporting.writing import write_report

__all__ = ["Wanted", "write_report"]
