"""What is odd about an input is said every night, whether its lines are read again or known."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.running import Row, requests, written


def odd(row: Row, kind: str) -> Row:
    """The same query with something odd about it."""
    first, *others = row["candidates"]
    match kind:
        case "scores rise":
            return {**row, "candidates": [{**first, "score": -1e9}, *others]}
        case "a docid stands twice":
            return {**row, "candidates": [first, first, *others]}
        case "there are no candidates":
            return {**row, "candidates": []}
        case _:
            embedded = {**first, "doc": {**first["doc"], "embedding": "none"}}
            return {**row, "candidates": [embedded, *others]}


KINDS = (
    "scores rise",
    "a docid stands twice",
    "there are no candidates",
    "an embedding is no list",
)


@pytest.fixture
def rows() -> list[Row]:
    """Two queries of each kind, then two with nothing odd about them."""
    plain = requests(queries=10, candidates=12)
    kinds = [kind for kind in KINDS for _ in range(2)]
    return [odd(row, kind) for row, kind in zip(plain, kinds, strict=False)] + plain[8:]


def told(shell: Shell, *arguments: object, code: int = 0) -> Counter[str]:
    """How many queries each kind of warning of a run is about."""
    found = shell.run(*arguments, "--json")
    assert found.code == code, found.err
    counts: Counter[str] = Counter()
    for said in found.json["warnings"]:
        about, _, sentence = said.partition("): ")
        for kind in KINDS:
            counts[kind] += int(about.split()[0]) if sentence.startswith(kind) else 0
    return counts


def test_what_is_odd_is_counted_each_night(shell: Shell, source: Path, rows: list[Row]) -> None:
    every = Counter(KINDS * 2)
    for _ in range(3):  # nothing changes
        assert told(shell, source) == every
    # Some lines are read and others are known.
    written(source, [*rows[:9], odd(rows[9], KINDS[0])])
    assert told(shell, source) == every + Counter(KINDS[:1])
    written(source, [*rows[2:9], odd(rows[9], KINDS[1])])
    assert told(shell, source) == every + Counter(KINDS[1:2]) - Counter(KINDS[:1] * 2)


def test_a_run_that_goes_on_counts_what_was_done_before(
    shell: Shell, source: Path, rows: list[Row], tmp_path: Path
) -> None:
    best = rows[0]["candidates"][0]["docid"]
    wrong = tmp_path / "wrong.qrels"  # by which the model makes it worse, so that the run stops
    wrong.write_text(f"q1 0 {best} 1\n")
    assert told(shell, source, "--gate-qrels", wrong, code=3) == Counter(KINDS * 2)
    assert told(shell, source) == Counter(KINDS * 2)
