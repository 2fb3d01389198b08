"""How each stage of a job asks its windows, from its settings and what its server offers."""

from __future__ import annotations

from batchrank.answers.forms import max_tokens
from batchrank.calls import Form
from batchrank.readings.base import Means, Way
from batchrank.readings.explain import EXPLANATION_TOKENS
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import Templates

_THINKING_TOKENS = 4096
"""Room to reason where thinking is on; a window's answer itself takes few tokens."""


def make_ways(
    spec: JobSpec, templates: Templates, form: Form, top_logprobs: int
) -> tuple[Way, ...]:
    """One way a stage, with that stage's template."""
    return tuple(
        Way(stage.reader, Means(template, form, thinking_tokens(spec), top_logprobs))
        for stage, template in zip(spec.stages, templates, strict=True)
    )


def thinking_tokens(spec: JobSpec) -> int:
    """Room for reasoning before an answer."""
    return _THINKING_TOKENS if spec.thinking == "on" else 0


def answer_tokens(spec: JobSpec) -> int:
    """The most tokens an answer may take, in the wordiest form."""
    longest = max(max_tokens(form, spec.largest, spec.largest) for form in Form)
    if any(stage.answer == "explain" for stage in spec.stages):
        longest += EXPLANATION_TOKENS
    return longest + thinking_tokens(spec)
