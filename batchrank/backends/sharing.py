"""How a server is shared with others: who waits at it, and who goes first."""

from __future__ import annotations

import re
from collections.abc import Mapping

from batchrank.backends.loose import parse, rows
from batchrank.backends.transport import Transport

BACKGROUND: Mapping[str, int] = {"vllm": 1, "sglang": -1}
"""The priority behind the default of 0: vLLM takes the lowest number first, SGLang the highest."""
_QUEUES = {
    "vllm": re.compile(r"^vllm:num_requests_waiting(?:\{.*\})? (\S+)$", re.MULTILINE),
    "sglang": re.compile(r"^sglang:num_queue_reqs(?:\{.*\})? (\S+)$", re.MULTILINE),
}


def in_background(body: bytes, kind: str) -> bytes:
    """The JSON object `body` with the field that lets others go first; as it is, where none does.

    Added last: it changes no answer, so it is no part of what an answer is known by.
    """
    priority = BACKGROUND.get(kind)
    return body if priority is None else b'%b,"priority":%d}' % (body[:-1], priority)


async def crowd(http: Transport, kind: str, own: int) -> int | None:
    """See `Backend.crowd`. llama.cpp tells only which slots are at work."""
    if kind == "llama.cpp":
        slots = rows(parse(await http.get_text("/slots")))
        return max(0, sum(slot.get("is_processing") is True for slot in slots) - own)
    queue = _QUEUES.get(kind)
    if queue is None:
        return None
    waiting = queue.findall(await http.get_text("/metrics"))
    return round(sum(float(count) for count in waiting)) if waiting else None
