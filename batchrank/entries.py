"""Cache entries: how the key of a query and the value with its ranking are made, and read back."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

import orjson

SQLITE_APPLICATION_ID = 0x62726E63  # "brnc"

FORMAT = 1
"""Of keys and values together; a reader refuses what it does not know."""

# All of White_Space that NFKC leaves; what it takes away became a space (U+00A0, U+2003, U+3000).
_SPACES = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_NAMESPACE = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


class Step(StrEnum):
    """A step of normalisation; they are taken in this order."""

    NFKC = "nfkc"
    CASEFOLD = "casefold"
    SPACES = "spaces"


@dataclass(frozen=True, slots=True)
class Scheme:
    """How keys are made of queries: the steps of normalisation, and whether candidates count."""

    steps: frozenset[Step] = frozenset(Step)
    candidates: bool = False

    def __str__(self) -> str:
        steps = ",".join(step for step in Step if step in self.steps) or "none"
        return f"{steps}+candidates" if self.candidates else steps

    @classmethod
    def parse(cls, text: str) -> Scheme:
        """The inverse of `str`; raises ValueError."""
        steps, plus, candidates = text.partition("+")
        if plus and candidates != "candidates":
            raise ValueError(f"no scheme of keys: {text!r}")
        named = () if steps == "none" else steps.split(",")
        return cls(frozenset(Step(name.strip()) for name in named), bool(plus))


DEFAULT_SCHEME = Scheme()


def normalised(query: str, steps: frozenset[Step] = DEFAULT_SCHEME.steps) -> str:
    """A query as its key sees it: compatible forms, cases and runs of white space made alike.

    Folding case can leave compatible forms behind, so NFKC is taken before and after it.
    """
    if Step.NFKC in steps:
        query = unicodedata.normalize("NFKC", query)
    if Step.CASEFOLD in steps:
        query = query.casefold()
        if Step.NFKC in steps:
            query = unicodedata.normalize("NFKC", query)
    if Step.SPACES in steps:
        if query.isascii() and query.isprintable():  # its only white space are blanks
            return " ".join(query.split())
        query = _SPACES.sub(" ", query).strip(" ")
    return query


def entry_key(query: str, candidates: Iterable[str] | None, scheme: Scheme) -> str:
    """The key of a query within a namespace: SHA-256, in lower-case hexadecimal digits.

    Where candidates count, `:` and a second digest follow: of their docids without repetition, in
    the order of their UTF-8 bytes, each as the number of its bytes, `:`, the bytes and `,`.
    Raises ValueError where they count and are not given.
    """
    key = hashlib.sha256(_bytes(normalised(query, scheme.steps))).hexdigest()
    if not scheme.candidates:
        return key
    if candidates is None:
        raise ValueError("keys of this namespace include the set of candidates: give them")
    docids = sorted(map(_bytes, set(candidates)))
    joined = b"".join(b"%d:%b," % (len(docid), docid) for docid in docids)
    return f"{key}:{hashlib.sha256(joined).hexdigest()}"


def is_namespace(text: str) -> bool:
    """Whether a text may stand before keys: letters, digits and `_.:-`, at most 100."""
    return _NAMESPACE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Origin:
    """What all entries of one run share: its model and template, when it began (seconds since the
    epoch), and the key of its job in hexadecimal digits."""

    model: str
    template: str
    created: float
    job: str


def encode_value(docids: bytes, count: int, shared: bytes) -> bytes:
    """The value of an entry as one line of JSON.

    `docids` are the `count` of a ranking, best first, as a JSON array; `shared` is what
    `encode_origin` makes. The scores are those of batchrank's output: n − rank + 1.
    """
    return b'{"docids":%b,%b,%b' % (docids, _scores(count), shared)


@lru_cache
def _scores(count: int) -> bytes:
    return b'"scores":%b' % orjson.dumps(list(range(count, 0, -1)))


def encode_origin(origin: Origin) -> bytes:
    """The end of each value of a run."""
    created = f"{datetime.fromtimestamp(origin.created, UTC):%Y-%m-%dT%H:%M:%SZ}"
    value = {
        "model": origin.model,
        "template": origin.template,
        "created": created,
        "job": origin.job,
    }
    # A server may give its model a name with a lone surrogate in it: as in the output, a "?".
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")[1:]


def stored_docids(value: bytes | str) -> list[str]:
    """The docids of an entry's value, best first; raises ValueError where it is none."""
    try:
        docids = orjson.loads(value)["docids"]
    except (KeyError, TypeError) as error:
        raise ValueError("this is no value of a cache entry") from error
    if not isinstance(docids, list):
        raise ValueError("this is no value of a cache entry")
    return docids


def expiry(key: str, created: float, ttl: float | None, jitter: float) -> float | None:
    """When an entry ends, in the unit of `created`; None for never.

    A share of up to `jitter` is taken off `ttl`, so that not all entries of a night end at once.
    It follows from the key: a publication that is resumed writes what it wrote before.
    """
    if ttl is None:
        return None
    return created + ttl * (1 - jitter * int(key[-8:], 16) / 0x1_0000_0000)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
