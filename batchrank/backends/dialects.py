"""Writes a prompt in the fields that each kind of OpenAI-compatible server takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from batchrank.answers.forms import grammar, regex, schema
from batchrank.backends.base import Call
from batchrank.backends.loose import Json
from batchrank.backends.scoring import (
    constrained_likelihood,
    echoed_likelihood,
    rerank,
    rerank_texts,
)
from batchrank.calls import ChatPrompt, Form, LikelihoodPrompt, RerankPrompt

Fields = Mapping[str, object]

_STANDARD: Fields = {"temperature": 0, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}


def _template_switch(thinking: bool) -> Fields:
    """Thinking by the chat template: most models know the first name, some the second."""
    return {"chat_template_kwargs": {"enable_thinking": thinking, "thinking": thinking}}


def _effort_switch(thinking: bool) -> Fields:
    """Thinking by effort; a model that thinks does so without being told."""
    return {} if thinking else {"reasoning_effort": "none"}


def _no_switch(_thinking: bool) -> Fields:
    return {}


def first_token(top_logprobs: int) -> Fields:
    """The fields, alike everywhere, that ask for the likeliest alternatives of a token."""
    return {"logprobs": True, "top_logprobs": top_logprobs} if top_logprobs else {}


def _json_only(form: Form, prompt: ChatPrompt) -> Fields:
    """No constraint, or a JSON schema in OpenAI's own field."""
    if form is Form.TEXT:
        return {}
    if form is Form.JSON:
        wanted = schema(prompt.documents, prompt.wanted, prompt.lowest)
        named = {"name": "ranking", "strict": True, "schema": wanted}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    raise ValueError(f"This server has no {form} form.")


def _llama_grammar(form: Form, prompt: ChatPrompt) -> Fields:
    if form is Form.GRAMMAR:
        return {"grammar": grammar(prompt.documents, prompt.wanted, prompt.lowest)}
    return _json_only(form, prompt)


def _vllm_regex(form: Form, prompt: ChatPrompt) -> Fields:
    if form is Form.REGEX:
        return {
            "structured_outputs": {"regex": regex(prompt.documents, prompt.wanted, prompt.lowest)}
        }
    return _json_only(form, prompt)


def _sglang_regex(form: Form, prompt: ChatPrompt) -> Fields:
    if form is Form.REGEX:
        return {"regex": regex(prompt.documents, prompt.wanted, prompt.lowest)}
    return _json_only(form, prompt)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one kind of server takes. `pins` are neutral values of the fields only it knows."""

    forms: tuple[Form, ...] = (Form.JSON, Form.TEXT)
    pins: Fields = field(default_factory=dict)
    thinking: Callable[[bool], Fields] = _no_switch
    constraint: Callable[[Form, ChatPrompt], Fields] = _json_only
    likelihood: Callable[[LikelihoodPrompt, str, int], Call] | None = None
    rerank: Callable[[RerankPrompt, str, str], Call] = rerank

    def body(self, prompt: ChatPrompt, *, model: str, seed: int, thinking: bool) -> Json:
        """The JSON body of a chat request, its keys always in the same order.

        Raises:
            ValueError: the prompt's form is none of `forms`.
        """
        return {
            "model": model,
            "messages": [{"role": "user", "content": prompt.text}],
            "max_tokens": prompt.max_tokens,
            "stream": False,
            "seed": seed,
            **_STANDARD,
            **self.pins,
            **self.thinking(thinking),
            **self.constraint(prompt.form, prompt),
            **first_token(prompt.top_logprobs),
        }


# Samplers are neutral where the value says "off": top_k 0 in llama.cpp, -1 in vLLM and SGLang,
# whose models may bring other defaults along.
DIALECTS: Mapping[str, Dialect] = {
    "llama.cpp": Dialect(
        forms=(Form.GRAMMAR, Form.JSON, Form.TEXT),
        pins={"top_k": 0, "min_p": 0, "repeat_penalty": 1, "cache_prompt": True},
        thinking=_template_switch,
        constraint=_llama_grammar,
        likelihood=constrained_likelihood,
    ),
    "vllm": Dialect(
        forms=(Form.REGEX, Form.JSON, Form.TEXT),
        pins={"n": 1, "top_k": -1, "min_p": 0, "repetition_penalty": 1},
        thinking=_template_switch,
        constraint=_vllm_regex,
        likelihood=echoed_likelihood,
    ),
    "sglang": Dialect(
        forms=(Form.REGEX, Form.JSON, Form.TEXT),
        pins={"n": 1, "top_k": -1, "min_p": 0, "repetition_penalty": 1},
        thinking=_template_switch,
        constraint=_sglang_regex,
        likelihood=echoed_likelihood,
    ),
    "lmstudio": Dialect(pins={"top_k": 0, "repeat_penalty": 1}),
    "ollama": Dialect(thinking=_effort_switch),
    "tei": Dialect(forms=(), rerank=rerank_texts),
    "openai": Dialect(pins={"n": 1}, likelihood=echoed_likelihood),
}
"""By kind of server; "openai" is any that gives no sign of being another."""
