"""The kinds of templates: each built in twice, each refused where another is needed."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from batchrank.errors import UsageError
from batchrank.prompts.loading import built_in_names, load_template
from batchrank.prompts.template import Kind

KINDS: tuple[Kind, ...] = get_args(Kind)
SHOTS = """
name = "shots"
version = 1
kind = "likelihood"
text = "{% for e in examples %}{{ e.passage }}={{ e.query }};{% endfor %}{{ document }}="
[[examples]]
passage = "p1"
query = "q1"
[[examples]]
passage = "p2"
query = "q2"
"""


def written(folder: Path, source: str) -> str:
    """The path of a template file that holds `source`."""
    path = folder / "own.toml"
    path.write_text(source, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_kind_is_built_in_in_english_and_chinese(kind: Kind, language: str) -> None:
    template = load_template(f"{kind}-{language}", kind)

    assert (template.kind, template.language) == (kind, language)
    assert template.name.startswith(f"{kind}-{language}@")


def test_nothing_else_is_built_in() -> None:
    assert len(built_in_names()) == 2 * len(KINDS)


@pytest.mark.parametrize("name", built_in_names())
def test_a_template_of_another_kind_is_refused(name: str) -> None:
    own = name.partition("-")[0]
    for kind in KINDS:
        if kind != own:
            with pytest.raises(UsageError, match=f"of kind '{own}' and this job needs .* '{kind}'"):
                load_template(name, kind)


@pytest.mark.parametrize("kind", ["binary", "graded"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_one_document_is_judged_for_the_query(kind: Kind, language: str) -> None:
    text = load_template(f"{kind}-{language}", kind).render(["the one"], query="which?")

    assert text.count("which?") == 2
    assert text.count("the one") == 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_likelihood_template_ends_where_the_query_begins(language: str) -> None:
    text = load_template(f"likelihood-{language}", "likelihood").render(["the passage"])

    assert "the passage" in text
    # A blank and a word would be two tokens where one is usual.
    assert not text.endswith(" ")


def test_examples_of_a_template_are_shown(tmp_path: Path) -> None:
    template = load_template(written(tmp_path, SHOTS), "likelihood")

    assert template.render(["p3"]) == "p1=q1;p2=q2;p3="


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("letters", "{{ query }}{% for d in documents %}{{ d }}{{ letter }}{% endfor %}"),
        ("binary", "{{ query }}"),
        ("graded", "{{ document }}"),
        ("likelihood", "{{ document }} {{ query }}"),
        ("likelihood", "no document"),
        ("ranking", "{{ query }}{% for d in documents %}{{ d }}{% endfor %}"),
    ],
)
def test_a_broken_template_of_any_kind_is_refused(tmp_path: Path, kind: str, body: str) -> None:
    source = f"name = 'own'\nversion = 1\nkind = '{kind}'\ntext = '{body}'"
    needed: Kind = next((known for known in KINDS if known == kind), "direct")
    with pytest.raises(UsageError, match=r"own\.toml"):
        load_template(written(tmp_path, source), needed)
