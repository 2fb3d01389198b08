"""A sample comes from all over its input."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from batchrank.errors import UsageError
from batchrank.formats.sources.source import Source
from batchrank.measuring.sampling import sampled
from batchrank.measuring.scratch import scratch_folder
from tests.cli.running import requests, written
from tests.conftest import ROOT


def drawn(source: Path, count: int, judged: set[str] | None = None) -> list[str]:
    """The qids of a sample."""
    with sampled(Source(str(source)), count, judged) as sample:
        assert sample.file.read_bytes().count(b"\n") == len(sample.requests)
        return [request.query.qid for request in sample.requests]


@pytest.mark.parametrize("count", [1, 3, 7, 10])
def test_one_of_each_part(tmp_path: Path, count: int) -> None:
    source = written(tmp_path / "in.jsonl", requests(queries=20, candidates=2))
    places = [int(qid[1:]) - 1 for qid in drawn(source, count)]
    parts = [range(20 * part // count, 20 * (part + 1) // count) for part in range(count)]
    assert all(place in part for place, part in zip(places, parts, strict=True))
    assert drawn(source, count) == [f"q{place + 1}" for place in places]


def test_only_what_can_be_tried_is_drawn(tmp_path: Path) -> None:
    rows = requests(queries=5, candidates=2)
    single = {"query": {"qid": "alone", "text": "one candidate"}, "candidates": ["it"]}
    source = written(tmp_path / "in.jsonl", [b"no JSON", rows[0], single, rows[0], *rows[1:]])
    assert drawn(source, 50) == ["q1", "q2", "q3", "q4", "q5"]
    assert drawn(source, 50, {"q4", "q2", "alone"}) == ["q2", "q4"]


def test_what_a_killed_command_left_is_removed_and_what_another_uses_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    dies = (
        "import os\n"
        "from batchrank.measuring.scratch import scratch_folder\n"
        "with scratch_folder() as folder:\n"
        "    (folder / 'noise.sqlite').touch()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", dies], check=False, cwd=ROOT)
    (left,) = tmp_path.iterdir()
    assert (left / "noise.sqlite").exists()
    other = tmp_path / "other-folder"
    other.mkdir()
    with scratch_folder() as first, scratch_folder() as second:
        assert sorted(tmp_path.iterdir()) == sorted((first, second, other))
    assert list(tmp_path.iterdir()) == [other]


def test_the_file_is_gone_afterwards(tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", requests(queries=1, candidates=2))
    with sampled(Source(str(source)), 1, None) as sample:
        file = sample.file
    assert not file.exists()
    with pytest.raises(UsageError, match="nothing to try"), sampled(Source(str(source)), 1, set()):
        pass
