"""Ranking strategies: pure generators of windows, one a file."""
