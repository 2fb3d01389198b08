"""Finds out what an OpenAI-compatible server is, and what it discloses about its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from batchrank.backends.base import choose_model, identify
from batchrank.backends.dialects import DIALECTS
from batchrank.backends.loose import Json, count, dig, rows, text
from batchrank.backends.transport import Transport
from batchrank.calls import Form, ServerInfo
from batchrank.errors import BadResponseError, FatalServerError, RefusedError

# Routes of which only one kind of server answers with an object that holds the key.
_SIGNS = (
    ("llama.cpp", "/props", "default_generation_settings"),
    ("lmstudio", "/api/v0/models", "data"),
    ("sglang", "/server_info", "model_path"),
    ("sglang", "/get_server_info", "model_path"),
    ("ollama", "/api/tags", "models"),
)
_OLLAMA_CONTEXT = 4096  # what its /v1 gives a model unless told otherwise on the server


async def detect(http: Transport, named: str | None, *, thinking: bool) -> ServerInfo:
    """What the server is and which of its models is used; `named` None takes the only one.

    Raises:
        FatalServerError: no such model, several and none named, bad key, or no such API.
        UnavailableError: the server can't be reached or is still loading its model.
        ServerError: any other failure to list the models.
    """
    try:
        listed = await _listed(http)
    except FatalServerError:
        told = await _probe(http, "/info")
        if "model_id" not in told:
            raise
        info = _tei(told)
        choose_model(named, [info.model])
        return info
    if any("meta" in row for row in listed):
        # llama.cpp lists its model while it is still loading; /health knows.
        await _probe(http, "/health")
    kind, details = await _kind(http, listed)
    model = choose_model(named, _names(listed, details if kind == "lmstudio" else {}, named))
    row = _row(listed, "id", model) | {"id": model}
    facts, context, slots = _READERS[kind](row, details)
    return ServerInfo(
        kind=kind,
        model=model,
        identity=identify(kind, **facts),
        forms=_forms(kind, thinking=thinking),
        context=context or None,
        slots=slots or None,
    )


def _tei(info: Json) -> ServerInfo:
    """Text Embeddings Inference, which has `/info` and no list of models."""
    model = text(info.get("model_id"))
    identity = identify("tei", id=model, sha=info.get("model_sha"), dtype=info.get("model_dtype"))
    return ServerInfo("tei", model, identity, forms=())


def _forms(kind: str, *, thinking: bool) -> tuple[Form, ...]:
    """The forms of a kind. llama.cpp's grammar holds from the first token: no thinking under it."""
    if kind == "llama.cpp" and thinking:
        return (Form.TEXT,)
    return DIALECTS[kind].forms


async def _listed(http: Transport) -> list[Json]:
    try:
        return rows((await http.get("/v1/models")).get("data"))
    except (RefusedError, BadResponseError) as error:
        raise FatalServerError(
            f"{http.url} gives no list of models at /v1/models; is the address right? {error}"
        ) from error


def _names(listed: list[Json], lmstudio: Json, named: str | None) -> list[str]:
    """The models to choose from: where none is named, LM Studio's are those it has loaded."""
    known = [row for row in rows(lmstudio.get("data")) if row.get("type") != "embeddings"]
    loaded = [row for row in known if row.get("state") == "loaded"]
    return [text(row.get("id")) for row in ((named is None and loaded) or known or listed)]


async def _kind(http: Transport, listed: list[Json]) -> tuple[str, Json]:
    """The kind of server, and the object that gave it away."""
    if any(row.get("owned_by") == "vllm" for row in listed):
        return "vllm", {}
    for kind, path, key in _SIGNS:
        answer = await _probe(http, path)
        if key in answer:
            return kind, answer
    return "openai", {}


async def _probe(http: Transport, path: str) -> Json:
    """The object at `path`; empty where the server has no such thing, however it says so.

    Raises:
        UnavailableError: the server can't answer now, which says nothing about what it has.
    """
    try:
        return await http.get(path)
    except (RefusedError, FatalServerError, BadResponseError):
        return {}


def _row(table: object, key: str, value: object) -> Json:
    """The object of a list that holds `value` under `key`; empty where none does."""
    return next((row for row in rows(table) if row.get(key) == value), {})


_Facts = tuple[Mapping[str, object], int | None, int | None]
"""What identifies the weights, the context of a slot, the slots."""


def _llama(row: Json, props: Json) -> _Facts:
    meta = ("n_params", "size", "n_vocab", "n_embd", "ftype")
    path = text(props.get("model_path")).replace("\\", "/")
    facts = {name: dig(row, "meta", name) for name in meta} | {"file": path.rpartition("/")[2]}
    context = count(dig(props, "default_generation_settings", "n_ctx"))
    return facts, context, count(props.get("total_slots"))


def _vllm(row: Json, _details: Json) -> _Facts:
    return {"id": row["id"], "root": row.get("root")}, count(row.get("max_model_len")), None


def _sglang(row: Json, info: Json) -> _Facts:
    names = ("model_path", "revision", "quantization", "weight_version")
    facts = {name: info.get(name) for name in names}
    return facts, count(row.get("max_model_len")), None


def _lmstudio(row: Json, details: Json) -> _Facts:
    known = _row(details.get("data"), "id", row["id"])
    names = ("id", "publisher", "arch", "quantization", "compatibility_type")
    facts = {"id": row["id"]} | {name: known.get(name) for name in names}
    return facts, count(known.get("loaded_context_length")), None


def _ollama(row: Json, tags: Json) -> _Facts:
    known = _row(tags.get("models"), "name", row["id"])
    return {"digest": known.get("digest")}, _OLLAMA_CONTEXT, None


def _openai(row: Json, _details: Json) -> _Facts:
    return {"id": row["id"], "root": row.get("root")}, count(row.get("max_model_len")), None


_READERS: Mapping[str, Callable[[Json, Json], _Facts]] = {
    "llama.cpp": _llama,
    "vllm": _vllm,
    "sglang": _sglang,
    "lmstudio": _lmstudio,
    "ollama": _ollama,
    "openai": _openai,
}
