"""A seeded stand-in for a model server that judges by known gains; no model is in it."""

from .config import JudgeConfig
from .knowledge import Knowledge, read_knowledge
from .ledger import Call
from .server import JudgeServer

__all__ = ["Call", "JudgeConfig", "JudgeServer", "Knowledge", "read_knowledge"]
