"""Reads the cache entries that `batchrank publish` writes; imports nothing else of batchrank."""

from __future__ import annotations

from batchrank.cache.cache import Cache, SyncCache
from batchrank.cache.lookup import CacheStatus, Found

__all__ = ["Cache", "CacheStatus", "Found", "SyncCache"]
