"""Finds the rerank route of a server, by a known pair that it has to get right."""

from __future__ import annotations

from batchrank.backends.dialects import DIALECTS
from batchrank.backends.transport import GET_SECONDS, Transport
from batchrank.calls import RerankPrompt, ServerInfo
from batchrank.errors import BadResponseError, IncapableError, RefusedError

ROUTES = ("/v1/rerank", "/rerank")
_PAIR = RerankPrompt(
    "at what temperature does water boil",
    (
        "The library opens at nine and closes at six, except on holidays.",
        "At sea level water boils at a temperature of 100 degrees Celsius.",
    ),
)


async def find_route(http: Transport, info: ServerInfo) -> str:
    """The route that reranks.

    Raises:
        IncapableError: there is none, or what is served there ranks a plain pair wrongly, as a
            causal reranker does whose prompt template the server was not given.
        UnavailableError: the server can't answer now.
    """
    faults = []
    for path in ROUTES:
        call = DIALECTS[info.kind].rerank(_PAIR, path, info.model)
        try:
            answer = call.read(await http.post(path, call.body, GET_SECONDS))
        except (RefusedError, BadResponseError) as error:
            faults.append(f"at {path}: {str(error).rstrip('.')}")
            continue
        scores = dict(answer.scored)
        if scores.get("1", 0.0) <= scores.get("0", 0.0):
            raise IncapableError(
                f"{info.model} at {http.url}{path} finds an unrelated text as relevant as a right "
                "answer: is it a reranker, served with its own prompt template?"
            )
        return path
    raise IncapableError(f"{http.url} gives no relevances; {'; '.join(faults)}.")
