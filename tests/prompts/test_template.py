"""Templates: both languages, own ones by path, and every broken one refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from batchrank.answers.forms import example
from batchrank.calls import Form
from batchrank.errors import UsageError
from batchrank.prompts.loading import load_template

GOOD = """
name = "mine"
version = 3
text = \"\"\"
{% for document in documents %}
[{{ loop.index }}] {{ document }}
{% endfor %}
{{ query }}: {{ wanted }} of {{ count }} as {{ example }}
\"\"\"
"""


def written(folder: Path, source: str) -> str:
    """The path of a template file that holds `source`."""
    path = folder / "own.toml"
    path.write_text(source, encoding="utf-8")
    return str(path)


def text_of(body: str) -> str:
    """A template file whose text is `body`."""
    return f"name = 'own'\nversion = 1\ntext = '''{body}'''"


@pytest.mark.parametrize("name", ["direct-en", "direct-zh"])
@pytest.mark.parametrize("form", list(Form))
def test_a_prompt_shows_the_query_twice_and_each_document_once(name: str, form: Form) -> None:
    documents = [f"text of document {number}" for number in range(1, 13)]

    prompt = load_template(name).render(
        documents, query="which one?", wanted=4, example=example(form, 4)
    )

    assert prompt.count("which one?") == 2
    labels = re.findall(r"^\[(\d+)\] (.*)$", prompt, re.MULTILINE)
    assert labels == [(str(n), text) for n, text in enumerate(documents, 1)]
    assert prompt.rstrip().endswith(example(form, 4))


@pytest.mark.parametrize(
    ("name", "wanted", "sentence"),
    [
        ("direct-en", 3, "Rank all 3 documents, best first."),
        ("direct-en", 2, "Name the 2 best of the 3 documents, best first."),
        ("direct-zh", 3, "请将全部 3 篇文档从好到差排序。"),
        ("direct-zh", 2, "请从 3 篇文档中选出最好的 2 篇，从好到差排序。"),
    ],
)
def test_all_or_the_best_are_asked_for(name: str, wanted: int, sentence: str) -> None:
    prompt = load_template(name).render(["a", "b", "c"], query="q", wanted=wanted, example="[1]")

    assert sentence in prompt.splitlines()


@pytest.mark.parametrize("name", ["direct-en", "direct-zh"])
def test_what_all_windows_share_stands_first(name: str) -> None:
    template = load_template(name)
    one = template.render(["a", "b", "c"], query="the query", wanted=2, example="[1]")
    other = template.render(["d", "e"], query="the query", wanted=2, example="[1]")

    assert one[: one.index("[1]")] == other[: other.index("[1]")]
    assert one.index("the query") < one.index("[1]")


def test_jinja_in_a_query_or_a_document_is_text() -> None:
    prompt = load_template("direct-en").render(
        ["{% raw %}", "b"], query="{{ wanted }}", wanted=1, example="[1]"
    )

    assert "Query: {{ wanted }}" in prompt
    assert "[1] {% raw %}" in prompt


def test_an_own_template_is_loaded_by_path(tmp_path: Path) -> None:
    template = load_template(written(tmp_path, GOOD))

    prompt = template.render(["a", "b"], query="q", wanted=1, example="1")

    assert template.name == "mine@3"
    assert prompt == "[1] a\n[2] b\nq: 1 of 2 as 1"


def test_any_change_of_the_file_changes_the_digest(tmp_path: Path) -> None:
    first = load_template(written(tmp_path, GOOD)).digest

    assert load_template(written(tmp_path, GOOD)).digest == first
    assert load_template(written(tmp_path, GOOD.replace(" of ", " from "))).digest != first
    assert (
        load_template(written(tmp_path, GOOD.replace("version = 3", "version = 4"))).digest != first
    )
    assert load_template("direct-en").digest != load_template("direct-zh").digest


SHOWN = "{{ query }}{% for d in documents %}{{ d }}{% endfor %}"


@pytest.mark.parametrize(
    "source",
    [
        "not toml [",
        "version = 1\ntext = 'x'",
        "name = 'x'\ntext = 'x'",
        "name = 'x'\nversion = 1",
        "name = 'x'\nversion = 1\ntext = 7",
        text_of("{% for d in documents %}"),
        text_of(SHOWN + "{{ unknown }}"),
        text_of(SHOWN + "{{ query + 1 }}"),
        text_of(SHOWN + "{{ 1 / 0 }}"),
        text_of(SHOWN + "{{ range(10 ** 9) }}"),
        text_of(SHOWN + "{{ query.index('nowhere') }}"),
        text_of(SHOWN + "{{ query.__class__.__mro__ }}"),
        text_of(SHOWN + "{% include 'other' %}"),
        text_of(SHOWN + "{% if wanted == count %}{{ unknown }}{% endif %}"),
        text_of(SHOWN + "{% if wanted < count %}{{ unknown }}{% endif %}"),
        text_of("{% for d in documents %}{{ d }}{% endfor %}"),
        text_of("{{ query }}"),
        text_of("{{ query }}{{ documents[0] }}"),
    ],
)
def test_a_broken_template_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(UsageError, match=r"own\.toml"):
        load_template(written(tmp_path, source))


@pytest.mark.parametrize("name", ["direct-fr", "", ".", "a\0b"])
def test_a_template_that_is_not_there_names_those_that_are(name: str) -> None:
    with pytest.raises(UsageError, match="direct-en, direct-zh"):
        load_template(name)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(b"name = '\xff'")

    with pytest.raises(UsageError, match=r"own\.toml"):
        load_template(str(path))
