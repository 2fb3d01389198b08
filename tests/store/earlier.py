"""What earlier versions left in a store."""

from __future__ import annotations

from dataclasses import astuple

import orjson
import zstandard

from batchrank.values import RankedQuery


def packed_by_version_1(ranked: RankedQuery) -> bytes:
    """As the first stores have it: one list, docids in first-stage order."""
    lineage = ranked.lineage
    return zstandard.compress(
        orjson.dumps(
            [
                1,
                ranked.qid,
                ranked.query,
                ranked.docids,
                ranked.scores,
                ranked.order,
                ranked.status,
                astuple(ranked.tally),
                ranked.answers,
                ranked.faults,
                ranked.calls,
                astuple(ranked.usage),
                ranked.error_kind,
                ranked.error,
                ranked.reduced,
                lineage and [*astuple(lineage)[:-1], lineage.digests.hex()],
                ranked.filtered,
                ranked.again,
            ]
        )
    )
