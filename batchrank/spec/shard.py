"""Which part of an input a run is about."""

from __future__ import annotations

import re

from batchrank.errors import UsageError
from batchrank.values import Shard

_SHARD = re.compile(r"(\d{1,6})/(\d{1,6})")


def parse_shard(text: str) -> Shard:
    """Read a shard such as `0/8`, the first of eight; UsageError for anything else."""
    if found := _SHARD.fullmatch(text.strip()):
        shard = Shard(*map(int, found.groups()))
        if shard.index < shard.count:
            return shard
    raise UsageError(
        f"shard {text!r} is none: write i/n, the part and how many there are, with i from 0 to "
        "n − 1, such as 0/8"
    )
