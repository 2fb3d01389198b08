"""The site builds without a warning: every link and anchor leads somewhere, nothing is left out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from batchrank.cli.commands import COMMANDS
from batchrank.spec.jobspec import JobSpec
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as strictly as can be."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={"NO_MKDOCS_2_WARNING": "1", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_every_command_and_key_is_in_the_reference(site: Path) -> None:
    commands = (site / "reference" / "cli" / "index.html").read_text()
    assert [name for name in COMMANDS if f"batchrank {name}" not in commands] == []
    keys = (site / "reference" / "job-spec" / "index.html").read_text()
    assert [name for name in JobSpec.model_fields if f"<code>{name}</code>" not in keys] == []


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        loaded = re.findall(
            r'<(?:script|link|img)[^>]*(?:src|href)="(https?:[^"]*)"', page.read_text()
        )
        assert [url for url in loaded if "squidfunk.github.io" not in url] == [], page
