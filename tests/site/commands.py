"""The batchrank commands that README and docs show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_INLINE = re.compile(r"`(batchrank [^`]+)`")


def shown(page: Path) -> list[str]:
    """The commands in a page's code blocks and at the end of its tables' rows, in their order."""
    return list(_commands(page.read_text(encoding="utf-8")))


def mentioned(page: Path) -> list[str]:
    """The commands in the running text of a page."""
    return _INLINE.findall(page.read_text(encoding="utf-8").replace("\n", " "))


def words(command: str) -> list[str]:
    """A command as a shell splits it, without its comment and the name of the program."""
    return shlex.split(re.sub(r"\s#.*$", "", command))[1:]


def _commands(text: str) -> Iterator[str]:
    is_fenced = False
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.startswith("```"):
            is_fenced = not is_fenced
        elif line.startswith("|"):
            yield from _INLINE.findall(line.rstrip("| ").rpartition("|")[2])
        elif (is_fenced or line.startswith("    ")) and line.strip().startswith("batchrank "):
            yield line.strip()
