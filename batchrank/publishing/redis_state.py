"""What the keys of a namespace in Redis say, and whether batchrank put them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis import exceptions
from redis.asyncio import Redis

from batchrank.entries import Scheme
from batchrank.errors import UsageError
from batchrank.publishing.target import Generation, Header

_COUNTS = ("began", "position", "written", "carried", "entries", "bytes")
_GENERATION = ("identity", "scheme", "source")

Info = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class State:
    """The generations of a namespace, by number: the one that is current, the one that is written,
    and all that are kept, the newest first. `infos` is what is told of each, empty where that was
    lost."""

    current: int | None
    next: int | None
    kept: Sequence[int]
    infos: Mapping[int, Info]

    @property
    def older(self) -> Sequence[int]:
        """Those before the current one, the newest first."""
        if self.current not in self.kept:
            return ()
        return self.kept[self.kept.index(self.current) + 1 :]

    def generation(self, number: int) -> Generation:
        """One of them; its header has no scheme where it was lost how its keys are made."""
        info = self.infos[number]
        if not info:
            return Generation(number, Header("", None, ""))
        header = Header(info["identity"], Scheme.parse(info["scheme"]), info["source"])
        return Generation(number, header, int(info.get("entries", 0)))

    def stored_bytes(self, numbers: Sequence[int]) -> int:
        """The memory that some of them take, as far as it is known."""
        return sum(int(self.infos[number].get("bytes", 0)) for number in numbers)


async def read_state(client: Redis, namespace: str, name: str) -> State:
    """What is in a namespace of the server called `name`.

    Raises UsageError where one of the keys that publications use is another program's.
    """
    keys = [f"{namespace}:{key}" for key in ("current", "next", "serial", "generations", "garbage")]
    pipe = client.pipeline(transaction=False)
    for key in keys[:3]:
        pipe.get(key)
    pipe.lrange(keys[3], 0, -1)
    pipe.smembers(keys[4])
    *pointers, generations, garbage = await _answers(pipe, keys, name)
    current, following, serial = (
        None if raw is None else _number(raw, key, name)
        for raw, key in zip(pointers, keys, strict=False)
    )
    kept = [_number(raw, keys[3], name) for raw in generations]
    for raw in garbage:
        _number(raw, keys[4], name)
    # That of the next number is looked at too: it must not be another program's either.
    told = dict.fromkeys((current, following, (serial or 0) + 1, *kept))
    numbers = [number for number in told if number is not None]
    keys = [f"{namespace}:info:{number}" for number in numbers]
    pipe = client.pipeline(transaction=False)
    for key in keys:
        pipe.hgetall(key)
    answers = await _answers(pipe, keys, name)
    infos = [_info(raw, key, name) for raw, key in zip(answers, keys, strict=True)]
    return State(current, following, kept, dict(zip(numbers, infos, strict=True)))


async def _answers(pipe: Any, keys: Sequence[str], name: str) -> list[Any]:
    """What each command of a pipeline found at its key."""
    found: list[Any] = await pipe.execute(raise_on_error=False)
    for key, answer in zip(keys, found, strict=True):
        if isinstance(answer, exceptions.ResponseError) and "WRONGTYPE" in str(answer):
            raise _foreign(name, key) from answer
        if isinstance(answer, Exception):
            raise answer
    return found


def _number(raw: bytes, key: str, name: str) -> int:
    if not raw.isdigit():
        raise _foreign(name, key)
    return int(raw)


def _info(raw: Mapping[bytes, bytes], key: str, name: str) -> Info:
    told = {text_of(field): text_of(value) for field, value in raw.items()}
    counts = [told[field].removeprefix("-") for field in _COUNTS if field in told]
    if told and not (
        all(field in told for field in _GENERATION)
        and all(count.isascii() and count.isdigit() for count in counts)
    ):
        raise _foreign(name, key)
    if told:
        try:
            Scheme.parse(told["scheme"])
        except ValueError as error:
            raise UsageError(
                f"{name}: the keys there are made in a way that is not known here ({key} says "
                f"{told['scheme']!r}): update batchrank, or use another --namespace"
            ) from error
    return told


def _foreign(name: str, key: str) -> UsageError:
    return UsageError(
        f"{name}: the key {key} there is another program's, since it holds nothing that batchrank "
        "writes: use another --namespace, or remove it"
    )


def text_of(raw: bytes | str) -> str:
    """What a field holds; what is no UTF-8 is shown as that."""
    return raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
