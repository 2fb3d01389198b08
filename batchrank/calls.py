"""What passes between batchrank and a model: prompts, answers, and what a server says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Form(StrEnum):
    """The form in which identifiers are asked for, cheapest first."""

    GRAMMAR = "grammar"
    """Compact identifiers, constrained by a GBNF grammar (llama.cpp)."""
    REGEX = "regex"
    """Compact identifiers, constrained by a regular expression (vLLM, SGLang)."""
    JSON = "json"
    """`{"ranking": [3, 1, 2]}`, constrained by a JSON schema."""
    TEXT = "text"
    """`[3] > [1] > [2]`, unconstrained."""


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """One message to a chat model, before a backend writes it in its server's own fields.

    `text` is the whole user message. `wanted` different numbers from `lowest` to `documents` are
    asked for in `form`, in at most `max_tokens` generated tokens. Of the first token the
    `top_logprobs` likeliest alternatives are wanted too.
    """

    text: str
    documents: int
    wanted: int
    form: Form
    max_tokens: int
    lowest: int = 1
    top_logprobs: int = 0


@dataclass(frozen=True, slots=True)
class LikelihoodPrompt:
    """Asks how likely a model finds `target` right behind `text`; nothing is generated freely."""

    text: str
    target: str


@dataclass(frozen=True, slots=True)
class RerankPrompt:
    """Asks a reranking model for the relevance of each document to the query."""

    query: str
    documents: tuple[str, ...]


Prompt = ChatPrompt | LikelihoodPrompt | RerankPrompt
"""One call to a model."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them; 0 where it did not."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model returned. `reasoning` is kept apart from `text` and is not part of the answer.

    `finish` is the server's reason in OpenAI's words: `stop` (ended by itself) or `length` (cut).
    `seconds` is the time from sending to the last byte. `scored` is what came back with numbers:
    the first token's alternatives with their log-probabilities (natural logarithm), the tokens of
    a likelihood's target with theirs, or the places of a reranker's documents, from 0, with their
    scores.
    """

    text: str
    reasoning: str = ""
    finish: str = "stop"
    usage: Usage = Usage()
    seconds: float = 0.0
    scored: tuple[tuple[str, float], ...] = ()
    model: str = field(default="", compare=False)
    """What the server calls the model that answered; not kept."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a model server says of itself before the first call.

    `identity` is a stable text of everything disclosed that tells one set of weights from another;
    `context` is the tokens one slot can hold; `slots` how many requests it works on at once.
    """

    kind: str
    model: str
    identity: str
    forms: tuple[Form, ...]
    context: int | None = None
    slots: int | None = None
