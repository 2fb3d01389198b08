"""Turns a model's answer into an order of a window's documents, and says how sure that is."""

from batchrank.answers.placing import permutation, unanswered
from batchrank.answers.reader import read
from batchrank.answers.reading import Reading

__all__ = ["Reading", "permutation", "read", "unanswered"]
