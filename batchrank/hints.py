"""Guesses what a misspelt name was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def meant(name: str, known: Iterable[str]) -> str:
    """The end of a complaint about `name`: `; did you mean 'depth'?`, or "" if none is near."""
    near = difflib.get_close_matches(name.replace("-", "_"), list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
