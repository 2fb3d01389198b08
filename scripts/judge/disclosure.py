"""What each kind of server says of itself, in the shapes of the real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from .config import JudgeConfig
from .latency import Slots
from .pointwise import numbers_of, text_of
from .prompt import count_prompt, prompt_text

CREATED = 1_760_000_000
"""A fixed time, so that the same server always says the same."""
CREATED_ISO = "2025-10-09T08:53:20Z"
PARAMETERS = 8_000_000_000
BYTES = 4_900_000_000

Page = dict[str, Any] | list[dict[str, Any]] | str
"""What a route answers: JSON, or plain text."""


def pages(config: JudgeConfig, slots: Slots) -> dict[str, Callable[[], Page]]:
    """The GET routes of `config.kind`; each call shows the state of that moment."""
    if config.kind == "llama.cpp":
        return _llama_cpp(config, slots)
    if config.kind == "vllm":
        return _vllm(config, slots)
    if config.kind == "sglang":
        return _sglang(config)
    if config.kind == "ollama":
        return _ollama(config, slots)
    return {"/v1/models": lambda: _models({"id": config.model, "owned_by": "judge"})}


def _models(*models: dict[str, Any]) -> Page:
    common = {"object": "model", "created": CREATED}
    return {"object": "list", "data": [common | model for model in models]}


def _llama_cpp(config: JudgeConfig, slots: Slots) -> dict[str, Callable[[], Page]]:
    count = config.slots or 1
    meta = {
        "vocab_type": 2,
        "n_vocab": 151936,
        "n_ctx_train": 32768,
        "n_embd": 4096,
        "n_params": PARAMETERS,
        "size": BYTES,
    }
    props: Page = {
        "default_generation_settings": {"params": {"seed": 0}, "n_ctx": config.context},
        "total_slots": count,
        "model_alias": config.model,
        "model_path": f"/models/{config.model}.gguf",
        "modalities": {"vision": False, "audio": False},
        "chat_template": "{{ messages[0].content }}",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "build_info": "b0000-judge",
    }
    return {
        "/health": lambda: {"status": "ok"},
        "/props": lambda: props,
        "/v1/models": lambda: _models(
            {"id": config.model, "owned_by": "llamacpp", "meta": meta},
        ),
        "/slots": lambda: [
            {"id": slot, "n_ctx": config.context, "is_processing": slot < slots.busy}
            for slot in range(count)
        ],
    }


def _vllm(config: JudgeConfig, slots: Slots) -> dict[str, Callable[[], Page]]:
    labels = f'{{engine="0",model_name="{config.model}"}}'
    model: dict[str, Any] = {
        "id": config.model,
        "owned_by": "vllm",
        "root": config.model,
        "parent": None,
        "max_model_len": config.context,
        "permission": [],
    }
    return {
        "/health": lambda: "",
        "/version": lambda: {"version": "0.12.0"},
        "/v1/models": lambda: _models(model),
        "/metrics": lambda: (
            "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
            "# TYPE vllm:num_requests_running gauge\n"
            f"vllm:num_requests_running{labels} {float(slots.busy)}\n"
            "# HELP vllm:num_requests_waiting Number of requests waiting to be processed.\n"
            "# TYPE vllm:num_requests_waiting gauge\n"
            f"vllm:num_requests_waiting{labels} {float(slots.waiting)}\n"
        ),
    }


def _sglang(config: JudgeConfig) -> dict[str, Callable[[], Page]]:
    info: Page = {
        "model_path": config.model,
        "context_length": config.context,
        "max_running_requests": config.slots,
        "version": "0.5.6",
    }
    model = {
        "id": config.model,
        "owned_by": "sglang",
        "root": config.model,
        "max_model_len": config.context,
    }
    return {
        "/health": lambda: "",
        "/v1/models": lambda: _models(model),
        "/get_model_info": lambda: {
            "model_path": config.model,
            "tokenizer_path": config.model,
            "is_generation": True,
        },
        "/server_info": lambda: info,
        "/get_server_info": lambda: info,
    }


def ollama_name(model: str) -> str:
    """A model's full name: Ollama adds `:latest` where no tag is given."""
    return model if ":" in model else f"{model}:latest"


def _ollama_model(config: JudgeConfig) -> dict[str, Any]:
    name = ollama_name(config.model)
    return {
        "name": name,
        "model": name,
        "size": BYTES,
        "digest": sha256(name.encode()).hexdigest(),
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "judge",
            "families": ["judge"],
            "parameter_size": "8.0B",
            "quantization_level": "Q4_K_M",
        },
    }


def _ollama_show(config: JudgeConfig) -> Page:
    return {
        "modelfile": "",
        "template": "{{ .Prompt }}",
        "details": _ollama_model(config)["details"],
        "model_info": {
            "general.architecture": "judge",
            "general.parameter_count": PARAMETERS,
            "judge.context_length": 32768,
        },
        "capabilities": ["completion"],
        "modified_at": CREATED_ISO,
    }


def _ollama(config: JudgeConfig, slots: Slots) -> dict[str, Callable[[], Page]]:
    model = _ollama_model(config)
    loaded = model | {
        "expires_at": "2099-01-01T00:00:00Z",
        "size_vram": BYTES,
        "context_length": config.context,
    }
    return {
        "/": lambda: "Ollama is running",
        "/api/version": lambda: {"version": "0.13.0"},
        "/api/tags": lambda: {"models": [model | {"modified_at": CREATED_ISO}]},
        "/api/ps": lambda: {"models": [loaded] if slots.max_in_flight else []},
        "/v1/models": lambda: _models({"id": model["name"], "owned_by": "library"}),
    }


def utility(config: JudgeConfig, path: str, payload: Mapping[str, Any]) -> Page | None:
    """The POST routes of `config.kind` that cost no model time; None: it has no such route."""
    messages = payload.get("messages", ())
    if config.kind == "ollama" and path == "/api/show":
        return _ollama_show(config)
    if config.kind == "llama.cpp" and path == "/tokenize":
        return {"tokens": _tokens(payload.get("content", ""), payload.get("with_pieces", False))}
    if config.kind == "llama.cpp" and path == "/apply-template":
        return {"prompt": prompt_text(messages)}
    if config.kind == "llama.cpp" and path == "/v1/chat/completions/input_tokens":
        return {"input_tokens": count_prompt(prompt_text(messages))}
    if config.kind == "vllm" and path == "/tokenize":
        count = count_prompt(prompt_text(messages) or payload.get("prompt", ""))
        context = config.context
        return {"count": count, "max_model_len": context, "tokens": list(range(count))}
    return None


def _tokens(content: str, with_pieces: bool) -> Sequence[object]:
    """As many as usage counts; with pieces, those that `/completion` takes in a grammar."""
    if with_pieces:
        return [{"id": number, "piece": text_of([number])} for number in numbers_of(content)]
    return list(range(count_prompt(content)))
