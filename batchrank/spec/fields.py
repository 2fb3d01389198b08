"""Types of settings that take what is meant and nothing that only looks like it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, Strict

Whole = Annotated[int, Strict()]
"""A whole number: neither `true`, which Python takes for 1, nor a text."""
Number = Annotated[float, Strict()]
Switch = Annotated[bool, Strict()]
Variable = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
"""The name of an environment variable."""

MANY = 1_000_000
"""Of anything that is held in memory."""
MOST = 1_000_000_000_000
"""Of anything that is only counted: lines, runs, calls. SQLite's integers reach much further."""
