"""A server that answers recorded windows of real models; a document's text is its docid."""

from __future__ import annotations

import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import orjson
from aiohttp import web

from scripts.judge.config import QUERY_PATTERN, WANTED_PATTERN
from scripts.judge.prompt import ReadPrompt, count_prompt, prompt_text, read_prompt
from scripts.judge.scoring import overlap

MODEL = "replay"
_QUERY = re.compile(QUERY_PATTERN, re.MULTILINE)
_WANTED = re.compile(WANTED_PATTERN)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The recorded calls of a gzipped file, in call order: `qid`, `docids`, `response`."""
    with gzip.open(path) as file:
        return [orjson.loads(line) for line in file]


class ReplayServer:
    """An OpenAI-compatible server without constraints, for the time of an `async with`.

    By window: a window's answer is that of the row with the same docids in the same order. By
    order: the k-th window of a query, whose text is its qid, gets the k-th answer of the query.
    Texts that are no docids of the rows (a client's checks) are ordered by the query's words.

    `replayed` counts answers from the rows by qid, `missed` the windows that no row answers (they
    get a text without a ranking), `other` the calls about other texts.
    """

    def __init__(self, rows: Iterable[dict[str, Any]], by: Literal["window", "order"]) -> None:
        self.url = ""
        self.replayed: Counter[str] = Counter()
        self.missed = 0
        self.other = 0
        self._by = by
        self._by_window: dict[tuple[str, ...], str] = {}
        self._by_order: defaultdict[str, list[str]] = defaultdict(list)
        for row in rows:
            self._by_window[tuple(row["docids"])] = row["response"]
            self._by_order[row["qid"]].append(row["response"])
        self._docids = {docid for window in self._by_window for docid in window}
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        runner = self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        if (request.method, request.path) == ("GET", "/v1/models"):
            model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "replay"}
            return web.json_response({"object": "list", "data": [model]})
        if (request.method, request.path) != ("POST", "/v1/chat/completions"):
            return web.json_response({"error": {"message": "not found"}}, status=404)
        text = prompt_text(orjson.loads(await request.read())["messages"])
        answer = self._answer(read_prompt(text, _QUERY, _WANTED))
        sent, made = count_prompt(text), count_prompt(answer)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": answer},
            "finish_reason": "stop",
        }
        usage = {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}
        return web.json_response(
            {"object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage}
        )

    def _answer(self, prompt: ReadPrompt) -> str:
        docids = tuple(text.split("\n", 1)[0].strip() for text in prompt.texts)
        if not self._docids.issuperset(docids) or not docids:
            self.other += 1
            return _by_words(prompt)
        if self._by == "window":
            found = self._by_window.get(docids)
        else:
            answers = self._by_order.get(prompt.query, [])
            asked = self.replayed[prompt.query]
            found = answers[asked] if asked < len(answers) else None
        if found is None:
            self.missed += 1
            return "This window was not recorded."
        self.replayed[prompt.query] += 1
        return found


def _by_words(prompt: ReadPrompt) -> str:
    if not prompt.texts:
        return "hello"
    found = overlap(prompt.query, prompt.texts)
    places = sorted(range(len(found)), key=lambda place: -found[place])
    return " > ".join(f"[{prompt.labels[place]}]" for place in places[: prompt.wanted])
