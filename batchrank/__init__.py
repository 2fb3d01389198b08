"""batchrank: rerank query logs overnight with a language model on your own machines."""

__version__ = "0.1.0"
