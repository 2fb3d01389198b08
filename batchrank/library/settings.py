"""Which of a job's settings a call from Python follows, and how its errors name them."""

from __future__ import annotations

from batchrank.errors import UsageError
from batchrank.spec.complaints import as_keys
from batchrank.spec.jobspec import JobSpec

UNFOLLOWED = (
    *("input", "format", "corpus", "topics", "run_file", "shard"),
    *("output", "output_format", "publish", "report"),
    *("dashboard", "dashboard_address", "metrics_port", "metrics_textfile", "log_format"),
)
"""Settings of the command line alone: where queries come from, what becomes of rankings, who
watches."""


def check_followed(spec: JobSpec) -> None:
    """See that a spec sets nothing that a call would not do; UsageError names what it sets."""
    fields = JobSpec.model_fields
    if found := [name for name in UNFOLLOWED if getattr(spec, name) != fields[name].default]:
        raise UsageError(
            f"the spec sets {', '.join(found)}, which only `batchrank run` follows: a program "
            "gives the requests and takes the rankings itself; leave that out"
        )


def in_python(message: str) -> str:
    """A message that names settings as JobSpec does: `base_url` in place of `--base-url`."""
    return as_keys(message, JobSpec.model_fields)
