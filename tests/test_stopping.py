"""A run that is stopped while it is being opened sends no window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batchrank.errors import StoppedError
from batchrank.store.store import Store
from tests.cli.running import judge, requests, windows
from tests.live.running import runner_of, spec_of


@pytest.mark.parametrize(
    ("step", "time"),
    [
        ("is_interrupted", 1),
        ("register_job", 1),
        ("begin_run", 1),
        ("add_lines", 1),
        ("register_job", 2),  # that of rankings without optional passes, as the asker is made
    ],
)
async def test_stopped_at_any_step_it_sends_no_window(
    step: str, time: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = requests(queries=5, candidates=12)
    original = getattr(Store, step)
    calls = 0

    async def stopping(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        result = await original(*given, **named)
        if calls == time:
            runner.stop(StoppedError("stopped by the test"))
        return result

    async with judge(rows) as server:
        settings = {"passes": "forward,reverse", "degrade": True, "time_limit": "1h"}
        runner = runner_of(spec_of(tmp_path, server.url, **settings), rows, [])
        monkeypatch.setattr(Store, step, stopping)
        report = await runner.run()
        assert windows(server) == []
    assert calls >= time
    assert (report.exit_code, report.reasons) == (75, ["stopped by the test"])
