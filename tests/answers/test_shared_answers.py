"""Recorded and adapted outputs of real models read as they should."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from batchrank.values import Status
from tests.answers.reading import reading

_STATUSES = {
    "ok": {Status.OK, Status.REPAIRED},
    "partial": {Status.REPAIRED},
    "unusable": {Status.FALLBACK},
}
"""What a case's status may be here."""

_AMBIGUOUS_IS_UNUSABLE = "letters can't be identifiers where the prompt's labels are numbers"


def test_every_answer_case_reads_as_expected(shared_data: Path) -> None:
    lines = (shared_data / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["kind"] == "answer"]
    wrong = []
    for case in cases:
        found = reading(case["payload"], case["n"])
        if case["status"] == "ambiguous":
            assert found.status is Status.FALLBACK, _AMBIGUOUS_IS_UNUSABLE
        elif (
            found.named != tuple(case["named"] or ())
            or found.status not in _STATUSES[case["status"]]
        ):
            wrong.append((case["id"], case["payload"], found))
    assert len(cases) > 50
    assert wrong == []


def test_every_recorded_answer_reads_as_expected(shared_data: Path) -> None:
    lines = (shared_data / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    wrong = []
    statuses: Counter[bool] = Counter()
    for row in rows:
        found = reading(row["response"], row["n"])
        statuses[found.status is Status.FALLBACK] += 1
        unusable = row["ranking"] is None
        if found.named != tuple(row["ranking"] or ()) or unusable != (
            found.status is Status.FALLBACK
        ):
            wrong.append((row["response"], found))
    assert wrong == []
    assert statuses[True] > 0
    assert statuses[False] > 900
