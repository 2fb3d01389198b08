"""What `scripts/bench.py` measures: one module a kind of row, and what they share."""
