"""Puts a run's rankings where an online system reads them: generations of cache entries."""
