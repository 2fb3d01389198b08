"""Content hashes: what makes two answers, two rankings or two jobs the same.

All by BLAKE2b but requests, which are hashed on the event loop: processors have instructions for
SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import orjson

KEY_BYTES = 20
"""160 bits: no accidental and no affordable deliberate collision in a store of any size."""


def line_digest(line: bytes) -> bytes:
    """Of one raw input line: unchanged lines are known again without being parsed."""
    return _hash(line)


def short_digest(digest: bytes) -> int:
    """A longer digest's first 64 bits, signed, where a mistake once in 10^19 does no harm."""
    return int.from_bytes(digest[:8], "big", signed=True)


def short_hash(text: str) -> int:
    """A signed 64-bit hash, for indexes that are checked again or may err once in 10^19."""
    return short_digest(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )


def answer_key(identity: str, template: str, path: str, body: bytes) -> bytes:
    """Of one exact request: model's identity, template's digest, path and body as sent."""
    digest = hashlib.sha256()
    for part in (identity.encode(), template.encode(), path.encode(), body):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()[:KEY_BYTES]


def job_key(settings: Mapping[str, object]) -> bytes:
    """Of every setting that can change a ranking, the model's identity among them."""
    return _hash(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS))


def ranking_key(job: bytes, line: bytes, *apart: int) -> bytes:
    """Of one line's ranking in one job; `apart` tells lines that failed by where they stand."""
    suffix = b"".join(number.to_bytes(8, "big") for number in apart)
    return _hash(job + line + suffix)


def generation(job: bytes, since: int) -> bytes:
    """What the keys of a job's rankings start from: anew with each run that starts afresh."""
    return job + (since.to_bytes(8, "big") if since else b"")


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()
