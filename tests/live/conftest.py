"""The command line and the judge of tests/cli, for what watches their runs."""

from __future__ import annotations

from tests.cli.conftest import rows, server, shell, source

__all__ = ["rows", "server", "shell", "source"]
