"""`batchrank template`: what is there, how it looks, and what can't be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from batchrank.prompts.loading import built_in_names
from tests.cli.conftest import Shell
from tests.cli.running import Row, batchrank, judge, rows_of, serving, windows, written
from tests.conftest import ROOT


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
    assert "makes a prompt of 1 document that doesn't show document 1" in bad.err


@pytest.mark.parametrize("name", built_in_names())
def test_a_source_is_one_to_start_from(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(batchrank("template", "show", name, "--source").out)

    own, built_in = batchrank("template", "show", path), batchrank("template", "show", name)

    assert own.code == 0, own.err
    assert own.err == built_in.err  # the digest of its content is in it
    assert own.out == built_in.out


def test_the_templates_in_the_docs_are_templates(tmp_path: Path) -> None:
    blocks = re.findall(
        r"```toml\n(.*?)```", (ROOT / "docs" / "readings.md").read_text(), re.DOTALL
    )
    kinds = []
    for block in blocks:
        if "text = " not in block:
            continue
        path = tmp_path / "mine.toml"
        path.write_text(block)
        shown = batchrank("template", "show", path)
        assert shown.code == 0, shown.err
        kinds.append(shown.err.split(", ")[1])
    assert kinds == ["direct", "likelihood"]


LISTED = """
name = "own"
version = 1
text = '''
Query: {{ query }}
{% for d in documents %}
[{{ loop.index }}] {{ d }}{{ 1 // 0 if "poison" in d }}
{% endfor %}
'''
"""


def test_a_template_that_fails_on_a_document_fails_its_query_and_not_the_job(
    rows: list[Row], tmp_path: Path
) -> None:
    template = tmp_path / "own.toml"
    template.write_text(LISTED)
    rows[1]["candidates"][3]["doc"]["text"] += " poison"
    source = written(tmp_path / "in.jsonl", rows)
    flags = ("--strategy", "single", "--template", template, "--max-failed", "1")
    with serving(judge(rows)) as server:
        shell = Shell(tmp_path, server.url)
        done = shell.run(source, *flags, "--max-fallback", "1", "--json")
        sent = len(windows(server))
        gated = shell.run(source, *flags)
        told = batchrank("run", source, *flags, "--dry-run", "--json", "--store", shell.store)

    assert done.code == 0, done.err
    assert [row["status"] for row in rows_of(tmp_path / "in.ranked.jsonl")] == [
        "ok",
        "failed",
        "ok",
    ]
    assert sent == 2
    said = f"template '{template}', line 7 (text): ZeroDivisionError"
    assert said in rows_of(tmp_path / "in.ranked.jsonl")[1]["error"]["message"]
    assert said in shell.look("inspect", "q2").out.decode()
    assert "template" in shell.look("status").out.decode()
    assert gated.code == 3
    assert (told.code, told.json["failed"], told.json["calls"]) == (0, 1, 2)


@pytest.mark.parametrize(
    ("flags", "size"),
    [
        ((), None),
        (("--window-size", "25"), 21),
        (("--strategy", "single"), 21),
        (("--strategy", "single", "--depth", "20"), None),
    ],
)
def test_a_template_is_tried_with_as_many_documents_as_the_job_shows(
    source: Path, tmp_path: Path, flags: tuple[str, ...], size: int | None
) -> None:
    template = tmp_path / "own.toml"
    template.write_text(LISTED.replace("in documents", "in documents[:20]"))
    given = ("run", source, "--store", tmp_path / "store", "--template", template, "--dry-run")
    told = batchrank(*given, *flags)

    assert told.code == (2 if size else 0), told.err
    if size:
        assert f"makes a prompt of {size} documents that doesn't show document {size}" in told.err
