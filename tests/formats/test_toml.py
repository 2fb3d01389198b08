"""What is written as TOML reads back as it was."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from batchrank.formats.toml import write_toml

SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
KEYS = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_values_read_back(values: dict[str, object]) -> None:
    assert tomllib.loads(write_toml(values, "chosen by\nsomething")) == values


def test_paths_are_text_and_none_is_left_out() -> None:
    written = write_toml({"store": Path("a/b.sqlite"), "limit": None}, "why")
    assert written == '# why\n\nstore = "a/b.sqlite"\n'
