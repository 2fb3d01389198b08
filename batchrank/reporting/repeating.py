"""The settings of a stored run as a job spec, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from batchrank.formats.toml import write_toml
from batchrank.formats.wording import one_line
from batchrank.ranking.replay import stages_of
from batchrank.spec.jobspec import JobSpec
from batchrank.store.records import Run


def job_spec(run: Run) -> dict[str, Any]:
    """The keys of a job spec that has the same ranking settings as a run's job.

    Where the model is served is no part of a job, so it is not kept.
    """
    settings = run.settings
    stages = stages_of(settings)
    for stage, template in zip(stages, settings["template"].split("+"), strict=True):
        name, _, _ = template.partition("@")
        if name not in ("none", JobSpec.model_validate({**stage, "yes": True}).template_name):
            stage["template"] = name
    values: dict[str, Any] = {"model": settings["model"]}
    values |= stages[0] if len(stages) == 1 else {"stage": stages}
    for name in ("thinking", "max_doc_tokens", "re_ask"):
        values[name] = settings[name]
    if any(stage["strategy"] == "pairwise" for stage in stages):
        values["yes"] = True
    if (building := settings["incremental"]) is not None:
        values |= {
            "incremental": True,
            "incremental_max_change": building["max_change"],
            "incremental_max_age": f"{round(building['max_age'])}s",
        }
    for name in ("filter", "alpha", "normalise", "near_duplicates", "mmr"):
        if name in settings:
            values[name] = settings[name]
    # How many are asked for may follow from how many are written.
    last = settings["stages"][-1]["top"]
    wanted = settings["incremental"]["top"] if settings["incremental"] else last
    spec = JobSpec.model_validate(values)
    if wanted is not None and not _says(spec, settings):
        values["top_k"] = wanted
    return values


def settings_toml(run: Run) -> str:
    """`job_spec` as TOML, with what else its rankings depended on as a comment."""
    settings = run.settings
    comment = (
        f"Settings of run {run.id}.\n"
        f"Served as: {one_line(settings['identity'])}\n"
        f"Template: {one_line(settings['template'])}, digest {settings['template_digest']}\n"
        "Add base_url where the server is not found by itself."
    )
    return write_toml(job_spec(run), comment)


def repeat_command(run: Run, store: str) -> str:
    """The command that goes on with the run's job, or repeats it with --fresh."""
    words = ["batchrank", "run", run.input, "--job", "repeat.toml", "--store", store]
    return shlex.join([*words, "-o", run.output])


def _says(spec: JobSpec, settings: Mapping[str, Any]) -> bool:
    same = spec.ranking_settings()
    return all(same[name] == settings[name] for name in ("stages", "incremental"))
