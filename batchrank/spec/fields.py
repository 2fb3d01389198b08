"""Types of settings that take what is meant and nothing that only looks like it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, Strict

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

_SHARE = "write a share such as 5% or 0.05"


def _fraction(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(_SHARE)
    try:
        if isinstance(value, str) and value.strip().endswith("%"):
            return float(value.strip()[:-1]) / 100
        number = float(value) if isinstance(value, str | int | float) else 0.0
    except ValueError:
        raise ValueError(_SHARE) from None
    if 1 < number <= 100:
        raise ValueError(f"write {number:g}% or {number / 100:g}")
    return value


Fraction = Annotated[float, BeforeValidator(_fraction), Field(ge=0, le=1)]
"""A share from 0 to 1, which may also be given in per cent: `5%`."""
