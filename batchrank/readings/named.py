"""The readings by the names that a job spec calls them."""

from __future__ import annotations

from collections.abc import Mapping

from batchrank.readings.base import Reader
from batchrank.readings.explain import Explain
from batchrank.readings.first_token import FirstToken
from batchrank.readings.graded import Graded
from batchrank.readings.identifiers import Identifiers
from batchrank.readings.likelihood import Likelihood
from batchrank.readings.rerank import Rerank
from batchrank.readings.yes_no import YesNo

READERS: Mapping[str, Reader] = {
    "winners": Identifiers(full=False),
    "full": Identifiers(full=True),
    "logprobs": FirstToken(),
    "explain": Explain(),
    "yesno": YesNo(),
    "graded": Graded(),
    "likelihood": Likelihood(),
    "rerank": Rerank(),
}

POINTWISE = frozenset(name for name, reader in READERS.items() if reader.scores)
"""Readings that score documents one by one; the others put a window's documents in order."""
