"""A short form of scripts/fuzz.py, which feeds 100,000 odd inputs to each reader."""

from __future__ import annotations

from pathlib import Path

from batchrank.answers.strict import numbers
from scripts.fuzz import fuzz


def test_whatever_is_read_gives_a_result_or_a_typed_error(tmp_path: Path) -> None:
    outcomes = fuzz(5000, 11, tmp_path / "in.jsonl")
    assert sum(count for name, count in outcomes.items() if name.startswith("answer ")) == 5000
    # The inputs reach both ends of every reader.
    expected = {"answer ok", "answer repaired", "answer fallback", "body answer", "line request"}
    assert outcomes.keys() > expected | {"body BadResponseError", "file read", "file refused"}


def test_a_control_character_beside_a_number_is_a_blank() -> None:
    assert numbers("3,1\x1e") == numbers('{"ranking": [3,\x1c1]}') == (3, 1)
