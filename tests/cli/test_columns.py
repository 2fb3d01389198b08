"""Tables: what is wrapped is all there, in its own columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, set_cell_size

from batchrank.cli.display.columns import WIDTH, table

WORDS = st.lists(st.text(st.sampled_from("abc,_排序"), min_size=1, max_size=70), max_size=9)


@given(st.lists(st.tuples(WORDS.map(" ".join), st.integers(0, 10**6).map(str)), max_size=6))
def test_wrapped_rows_hold_every_text_whole(rows: list[tuple[str, str]]) -> None:
    header = ("", "setting", "cost")
    numbered = [(chr(ord("a") + place), *row) for place, row in enumerate(rows)]
    lines = table(header, numbered, texts=2, wraps=True)
    assert all(cell_len(line) <= WIDTH for line in lines)
    costs = max(map(len, ("cost", *(cost for _, cost in rows))))
    texts: dict[str, str] = {}
    mark = ""
    for line in lines[1:]:
        mark = line[:1].strip() or mark
        # What stands in front of the figures, which the first line of a row alone has.
        wide = (line[:1].strip() and line[: -costs - 2 if costs else None]) or line
        texts[mark] = texts.get(mark, "") + "".join(wide[1:].split())
    assert texts == {mark: "".join(text.split()) for mark, text, _ in numbered}
    assert set_cell_size(lines[0], 10).split() == ["setting"]
