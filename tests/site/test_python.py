"""The Python that docs show runs as it stands, block by block, as in a notebook."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.M | re.S)


async def test_the_blocks_run_in_their_order(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(BLOCKS) >= 4
    names: dict[str, object] = {}
    for block in BLOCKS:
        code = compile(block, "docs/python.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(code, names)
        if inspect.isawaitable(running):
            await running
    assert await asyncio.to_thread((desk / "kept.sqlite").exists)
    assert "tides" in capsys.readouterr().out
