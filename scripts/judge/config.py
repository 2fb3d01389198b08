"""The settings of a judge server: what it imitates, how well it judges, fails and how fast."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Kind = Literal["llama.cpp", "vllm", "sglang", "ollama", "openai"]
Bias = Literal["none", "first", "u-shape"]
NoiseBy = Literal["document", "request", "attempt"]
Malformed = Literal["prose", "repeats", "missing", "out-of-range", "torn", "empty", "think"]
Fault = Literal["500", "503", "429", "reset", "hang", "html", "error-200"]
Field = Literal["grammar", "structured_outputs", "regex", "ebnf", "response_format", "format"]

HONOURED: dict[Kind, frozenset[Field]] = {
    "llama.cpp": frozenset({"grammar", "response_format"}),
    "vllm": frozenset({"structured_outputs", "response_format"}),
    "sglang": frozenset({"regex", "ebnf", "response_format"}),
    "ollama": frozenset({"format", "response_format"}),
    "openai": frozenset({"response_format"}),
}
"""The constraint fields that each kind of server obeys; it ignores the others with 200."""

MAX_LOGPROBS: dict[Kind, int] = {
    "llama.cpp": 100,
    "vllm": 20,
    "sglang": 20,
    "ollama": 20,
    "openai": 20,
}
"""The largest `top_logprobs` that each kind of server takes."""

WANTED_PATTERN = r"\b(\d+) (?:most|best)|最好的 ?(\d+)"
QUERY_PATTERN = r"^(?:Query|查询)\s*[:：]\s*(.+)$"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeConfig:
    """One judge. Times are seconds, rates of failure fractions, token rates tokens a second.

    Raises ValueError where a value makes no sense.
    """

    kind: Kind = "openai"
    model: str = "judge"
    context: int = 8192
    """Tokens one slot holds."""
    constraints: frozenset[Field] | None = None
    """The constraint fields obeyed; None: those of the kind; an empty set: a text-only server."""
    api_key: str | None = None
    """The key a request must carry."""

    seed: int = 0
    docid_text: bool = False
    """The first line of a document is its docid."""
    wanted_pattern: str = WANTED_PATTERN
    """Finds, outside the documents of a prompt without constraint, how many best are asked for."""
    query_pattern: str = QUERY_PATTERN
    """Finds the query in a prompt, outside its documents."""

    noise: float = 0.0
    """Standard deviation of the noise on a gain."""
    noise_by: NoiseBy = "document"
    """Noise stays with a query's document, or is drawn anew for each distinct request, or each time
    that a request comes."""
    bias: Bias = "none"
    bias_strength: float = 1.0
    """Gain that the favoured place in a prompt adds."""

    malformed_rate: float = 0.0
    malformed: tuple[Malformed, ...] = get_args(Malformed)
    alternatives: int | None = None
    """Alternatives of a token that are returned, however many are asked for; None: all of those."""
    sound_trials: bool = False
    """Answers about documents it does not know, such as a client's trial, are never malformed."""
    error_rate: float = 0.0
    errors: tuple[Fault, ...] = ("500", "503", "429", "reset", "html", "error-200")
    fail_once: bool = False
    """A distinct request fails at most once."""
    retry_after: float = 1.0
    hang_seconds: float = 3600.0

    slots: int | None = None
    """Requests worked on at once; None: no limit."""
    queue: int | None = None
    """Requests that may wait for a slot before the server says 503; None: no limit."""
    call_seconds: float = 0.0
    sigma: float = 0.0
    """Lognormal spread of `call_seconds`, whose mean stays."""
    prompt_rate: float | None = None
    generated_rate: float | None = None
    prefix_cache: int = 0
    """Prompt tokens whose prefixes the server remembers; 0: no cache."""

    log: Path | None = None
    """A file that gets one JSON line a model call."""

    def __post_init__(self) -> None:
        for name in ("malformed_rate", "error_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is a fraction from 0 to 1")
        for name in ("alternatives", "slots", "prompt_rate", "generated_rate"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} is above 0 or left out")
        for name in ("kind", "bias", "noise_by"):
            allowed = get_args({"kind": Kind, "bias": Bias, "noise_by": NoiseBy}[name])
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is one of {', '.join(allowed)}")
        for name, allowed in (("malformed", get_args(Malformed)), ("errors", get_args(Fault))):
            unknown = set(getattr(self, name)) - set(allowed)
            if unknown:
                raise ValueError(f"{name} has {', '.join(unknown)}; known: {', '.join(allowed)}")

    @property
    def honoured(self) -> frozenset[Field]:
        """The constraint fields this judge obeys."""
        return HONOURED[self.kind] if self.constraints is None else self.constraints
