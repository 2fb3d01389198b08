"""What one setting stands for: a preset, and the model that comes with the embedded backend."""

from __future__ import annotations

from collections.abc import Mapping

PRESETS: Mapping[str, Mapping[str, object]] = {
    "fast": {"depth": 60},
    "balanced": {},
    "thorough": {"strategy": "tournament", "window_size": 25, "tournaments": 5},
}
"""What docs/strategies.md measured; settings that are given win."""
_BUILT_IN_MODEL: Mapping[str, object] = {
    "strategy": "pointwise",
    "answer": "likelihood",
    "max_doc_tokens": 120,
}
ONLY_LIKELIHOODS = (
    "the model that comes with backend embedded can only be asked for likelihoods (strategy "
    "pointwise, answer likelihood); name another with model_path"
)


def with_implied(given: Mapping[str, object]) -> dict[str, object]:
    """The settings of a job with those that they imply; what is given wins.

    Raises ValueError where what is given asks the model that comes with the embedded backend for
    anything but likelihoods.
    """
    implied: dict[str, object] = {}
    if given.get("backend") == "embedded" and given.get("model_path") is None:
        implied |= _BUILT_IN_MODEL
    built_in = "strategy" in implied and given.get("stage") is None
    implied |= PRESETS.get(str(given.get("preset")), {})
    if given.get("stage") is not None:
        implied = {name: implied[name] for name in implied if name == "max_doc_tokens"}
    whole = implied | dict(given)
    if built_in and (whole["strategy"], whole["answer"]) != ("pointwise", "likelihood"):
        raise ValueError(ONLY_LIKELIHOODS)
    return whole
