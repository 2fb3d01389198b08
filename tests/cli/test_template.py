"""`batchrank template`: what is there, how it looks, and what can't be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from batchrank.prompts.template import built_in_names
from tests.cli.running import batchrank


def test_all_templates_are_listed_with_what_they_serve() -> None:
    listed = batchrank("template", "list")

    lines = listed.out.decode().splitlines()
    assert [line.split()[0] for line in lines] == built_in_names()
    assert "direct-zh        zh  --answer winners, full" in lines


@pytest.mark.parametrize("name", built_in_names())
def test_a_template_is_shown_rendered(name: str) -> None:
    shown = batchrank("template", "show", name)

    assert shown.code == 0, shown.err
    assert "how long does it take to boil an egg" in shown.out.decode()
    assert "Eggs are sold by the dozen" in shown.out.decode()
    assert "{{" not in shown.out.decode()


def test_one_s_own_is_shown_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        "name = 'own'\nversion = 2\nkind = 'binary'\ntext = '{{ query }}? {{ document }}'"
    )
    good = batchrank("template", "show", path)
    path.write_text("name = 'own'\nversion = 2\nkind = 'binary'\ntext = '{{ query }}?'")
    bad = batchrank("template", "show", path)

    assert good.code == 0
    assert good.err.startswith("own@2, binary, ")
    assert bad.code == 2
    assert "doesn't show the query and every document" in bad.err
