"""Figures: medians and verdicts, a table, JSON and back, and the plots drawn from them."""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.benchmarks.figures import Figure, Row, figure, load, missed, save, table, together
from scripts.benchmarks.ideal import ideal_rate
from scripts.benchmarks.plots import draw
from scripts.benchmarks.slots import CASES

USED = figure("share of the slots' time used", 0.97, least=0.95)
BARE = figure("the bare client's share", 0.98)
ROWS = [
    Row("16x50ms", "400 queries", (USED, BARE)),
    Row("64x50ms", "400 queries", (replace(USED, values=(0.91, 0.9, 0.99), least=0.92), BARE)),
    Row(
        "delta",
        "50 seeds",
        (figure("calls", 0.167, most=0.2),),
        {"incremental": ((1, 0.1), (5, 0.2))},
    ),
    Row("scale", "many", (figure("memory, MB", 80, most=250),), {"100": ((10, 60.5), (100, 80))}),
]


@pytest.mark.parametrize(
    ("one", "verdict"),
    [
        (figure("x", 0.95, least=0.95), "pass"),
        (figure("x", 0.949, least=0.95), "FAIL"),
        (figure("x", 3, most=3), "pass"),
        (figure("x", 3.01, most=3), "FAIL"),
        (figure("x", 1), ""),
        (Figure("x", (0.9, 0.99, 0.96), least=0.95), "pass"),
        (Figure("x", (0.94, 0.99, 0.94), least=0.95), "FAIL"),
    ],
)
def test_the_median_of_the_runs_meets_its_target_or_does_not(one: Figure, verdict: str) -> None:
    assert one.verdict == verdict
    assert missed([Row("c", "", (one,))]) == (["c: x"] if verdict == "FAIL" else [])


def test_runs_of_a_case_become_one_row() -> None:
    runs = [Row("c", "", (figure("x", value, least=1), figure("y", 1))) for value in (3, 1, 2)]

    row = together(runs)

    assert row.figure("x").values == (3, 1, 2)
    assert (row.figure("x").value, row.figure("x").least) == (2, 1)


def test_the_table_names_each_case_once_and_says_what_was_missed() -> None:
    lines = table(ROWS).splitlines()

    assert lines[2] == "| 16x50ms | share of the slots' time used | 0.970 | ≥ 0.95 | pass |"
    assert lines[3] == "|  | the bare client's share | 0.980 |  |  |"
    assert lines[4].endswith("| 0.910 (0.900 to 0.990) | ≥ 0.92 | FAIL |")
    assert len(lines) == 2 + sum(len(row.figures) for row in ROWS)


def test_what_is_saved_is_read_back_as_it_was(tmp_path: Path) -> None:
    save(tmp_path / "rows.json", ROWS)

    assert load(tmp_path / "rows.json") == ROWS


def test_plots_are_drawn_of_the_rows_that_are_there_and_always_alike(tmp_path: Path) -> None:
    (first,) = draw(ROWS[:2], tmp_path / "some")

    written = draw(ROWS, tmp_path)

    assert [path.name for path in written] == ["slots.svg", "memory.svg", "delta.svg"]
    for path, words in zip(written, ("bare client", "queries", "incremental"), strict=True):
        texts = [e.text or "" for e in ElementTree.parse(path).iter() if e.tag.endswith("text")]
        assert any(words in text for text in texts)
    assert written[0].read_bytes() == first.read_bytes()


@pytest.mark.parametrize("slots", [1, 16, 28])
def test_slots_that_never_wait_are_used_all_the_time(slots: int) -> None:
    assert ideal_rate(slots, repeat(0.05), 200) * 0.05 / slots == pytest.approx(1, abs=0.03)


def test_every_target_of_the_slots_can_be_met() -> None:
    for case in CASES.values():
        assert 0 < (case.use or 1) <= 1
        assert 0 < case.rate <= 1
