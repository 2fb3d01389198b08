"""The readings by the names that a job spec calls them."""

from __future__ import annotations

from collections.abc import Mapping

from batchrank.readings.base import Reader
from batchrank.readings.identifiers import Identifiers

READERS: Mapping[str, Reader] = {
    "winners": Identifiers(full=False),
    "full": Identifiers(full=True),
}
