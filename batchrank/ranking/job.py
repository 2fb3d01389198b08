"""What makes a job one job: its settings, its template and the model it was given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from batchrank.keys import job_key
from batchrank.prompts.render import Cut
from batchrank.prompts.template import Template
from batchrank.prompts.tokens import TokenCounter
from batchrank.readings.base import Way
from batchrank.serving.preflight import Profile
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.ways import make_ways
from batchrank.strategies.base import Strategy
from batchrank.strategies.incremental import Merging

OF_THE_SERVER = frozenset(
    (
        *("fitted_window_size", "fitted_max_doc_tokens", "token_ratio", "fitted_letters"),
        *("form", "model", "identity"),
    )
)
"""Settings of a job that are known once its server was asked."""


@dataclass(frozen=True)
class Job:
    """Rankings of one job can be exchanged for one another; those of two jobs can't.

    There is one template a stage.
    """

    spec: JobSpec
    templates: tuple[Template, ...]
    profile: Profile

    @cached_property
    def settings(self) -> dict[str, object]:
        """Everything a ranking depends on, and the names that stand in outputs."""
        return {
            **self.spec.ranking_settings(),
            "fitted_window_size": self.profile.window_size,
            "fitted_max_doc_tokens": self.profile.max_doc_tokens,
            "token_ratio": self.profile.token_ratio,
            "fitted_letters": self.profile.letters,
            "form": self.profile.form,
            "template": "+".join(template.name for template in self.templates),
            "template_digest": "+".join(template.digest for template in self.templates),
            "model": self.profile.model,
            "identity": self.profile.identity,
        }

    @cached_property
    def key(self) -> bytes:
        """The job's identity in the store."""
        return job_key(self.settings)

    @property
    def strategy(self) -> Strategy:
        """The strategy in windows that fit the server."""
        return self.spec.make_strategy(self.profile.window_size, self.profile.letters)

    @property
    def merging(self) -> Merging:
        """How new documents are merged into an earlier order, in windows that fit the server."""
        return self.spec.make_merging(self.profile.window_size, self.profile.letters)

    @property
    def cut(self) -> Cut:
        """How long documents may be."""
        return Cut(TokenCounter(self.profile.token_ratio), self.profile.max_doc_tokens)

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """How the windows of each stage are asked and read."""
        return make_ways(self.spec, self.templates, self.profile.form, self.profile.top_logprobs)
