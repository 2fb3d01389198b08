"""The jobs that come with the project: they load, say true defaults, and their sample is sound."""

from __future__ import annotations

import re
import tomllib

import pytest

from batchrank.formats.requests import parse_request
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_spec
from batchrank.values import Request
from tests.conftest import ROOT

JOBS = ROOT / "jobs"
Grades = dict[tuple[str, str], int]


@pytest.fixture(scope="module")
def sample() -> list[Request]:
    lines = (JOBS / "sample.jsonl").read_bytes().splitlines()
    parsed = [parse_request(line) for line in lines]
    assert not any(line.warnings for line in parsed)
    return [line.request for line in parsed]


@pytest.fixture(scope="module")
def grades() -> Grades:
    rows = [line.split() for line in (JOBS / "sample.qrels").read_text().splitlines()]
    return {(qid, docid): int(grade) for qid, _, docid, grade in rows}


@pytest.mark.parametrize("name", ["demo.toml", "demo-windows.toml", "nightly.toml"])
def test_a_job_loads(name: str) -> None:
    assert isinstance(load_spec(JOBS / name, {}), JobSpec)


def test_nightly_shows_every_setting_and_its_default() -> None:
    text = (JOBS / "nightly.toml").read_text()
    silent = tomllib.loads("\n".join(re.findall(r"^# ([a-z_]+ = .*)$", text, re.MULTILINE)))
    assert silent.keys() | tomllib.loads(text).keys() == JobSpec.model_fields.keys()
    defaults = JobSpec.model_validate({})
    shown = JobSpec.model_validate(
        {name: value for name, value in silent.items() if getattr(defaults, name) is not None}
    )
    assert shown == defaults


def test_every_candidate_of_the_sample_is_judged(sample: list[Request], grades: Grades) -> None:
    candidates = [
        (request.query.qid, document.docid) for request in sample for document in request.candidates
    ]
    assert sorted(candidates) == sorted(grades)
    assert set(grades.values()) == {0, 1, 2}


def test_the_first_stage_of_the_sample_can_be_improved(
    sample: list[Request], grades: Grades
) -> None:
    for request in sample:
        found = [grades[request.query.qid, document.docid] for document in request.candidates]
        assert len(found) == 12
        assert found[0] == 0
        assert found.count(2) >= 2
