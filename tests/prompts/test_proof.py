"""A template that would fail, or leave something out, in some prompt is refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchrank.errors import PromptError, UsageError
from batchrank.prompts.loading import load_template
from batchrank.prompts.template import Kind

HEAD = "{{ query }}\n"
LINE = "[{{ loop.index }}] {{ d }}\n"
LISTED = f"{HEAD}{{% for d in documents %}}{LINE}{{% endfor %}}"


def load(folder: Path, body: str, kind: Kind = "direct", most: int = 20) -> str:
    """Load a template whose text is `body`, which starts in line 5; a prompt of two documents."""
    path = folder / "own.toml"
    path.write_text(f"name = 'own'\nversion = 1\nkind = '{kind}'\ntext = '''\n{body}'''")
    template = load_template(str(path), kind, most)
    query = None if kind == "likelihood" else "q"
    return template.render(["one", "two"], query=query, example="[1]", labels="AB")


def each(line: str) -> str:
    """A prompt with `line` for each document."""
    return f"{HEAD}{{% for d in documents %}}{line}\n{{% endfor %}}"


BEYOND = {
    "omitted": f"{HEAD}{{% for d in documents[:LIMIT] %}}{LINE}{{% endfor %}}",
    "omitted by its place": each(
        "{% if loop.index <= LIMIT %}[{{ loop.index }}] {{ d }}{% endif %}"
    ),
    "an index that is not there": LISTED
    + "{% if count > LIMIT %}{{ documents[count] }}{% endif %}",
    "a word that is not there": LISTED + "{{ ('w ' * LIMIT).split()[count - 1] }}",
    "divided by nothing": LISTED + "{% if count > LIMIT %}{{ 1 // 0 }}{% endif %}",
    "the same identifier": each("[{{ [loop.index, LIMIT] | min }}] {{ d }}"),
    "no identifier": each("{% if loop.index <= LIMIT %}[{{ loop.index }}]{% endif %} {{ d }}"),
    "cut": each("[{{ loop.index }}] {{ d[:5] if loop.index > LIMIT else d }}"),
}
"""Texts that are right in prompts of up to LIMIT documents only."""


@pytest.mark.parametrize("way", BEYOND)
@given(data=st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_breaks_beyond_a_size_is_refused_where_windows_reach_it(
    tmp_path: Path, way: str, data: st.DataObject
) -> None:
    # Up to four documents are always tried, since the preflight shows as many.
    most = data.draw(st.integers(4, 45))
    limit = data.draw(st.integers(2, most + 5))
    body = BEYOND[way].replace("LIMIT", str(limit))

    if limit >= most:
        assert load(tmp_path, body, most=most)
    else:
        with pytest.raises(PromptError, match=r"own\.toml"):
            load(tmp_path, body, most=most)


BAD_LISTS = {
    "no identifiers": each("{{ d }}"),
    "a list as Python writes it": HEAD + "{{ documents }}",
    "joined": HEAD + "{{ documents | join('\n') }}",
    "counted from 0": each("[{{ loop.index0 }}] {{ d }}") + "Rank all {{ count }} documents.",
    "counted from 2": each("[{{ loop.index + 1 }}] {{ d }}") + "Rank all {{ count }} documents.",
    "numbered backwards": each("[{{ loop.revindex }}] {{ d }}"),
    "letters in place of numbers": each("[{{ 'ABCDEFGHIJKLMNOPQRSTU'[loop.index0] }}] {{ d }}"),
    "all identifiers first": HEAD
    + "{% for d in documents %}[{{ loop.index }}]{% endfor %}\n{{ documents | join('\n') }}",
    "a second identifier behind them": LISTED + "[1] other",
    "the third again": LISTED + "Rank them.\n\n  [3] see above\n",
    "a second title behind them": each("Document {{ loop.index }}:\n{{ d }}\n")
    + "Document 2:\nsomething else",
    "a number again": each("{{ loop.index }}. {{ d }}") + "2. Rank them.",
    "the last document left out": f"{HEAD}{{% for d in documents[:-1] %}}{LINE}{{% endfor %}}",
    "each once however often it comes": each("")
    .replace("in documents", "in documents | unique")
    .replace("\n{% endfor", LINE + "{% endfor"),
    "those without text skipped": f"{HEAD}{{% for d in documents if d %}}{LINE}{{% endfor %}}",
    "always the first": each("[{{ loop.index }}] {{ document }}"),
    "truncated": each("[{{ loop.index }}] {{ d | truncate(300) }}"),
    "changed": each("[{{ loop.index }}] {{ d | upper }}"),
    "the address of a function": each("[{{ loop.index }}] {{ d }}") + "{{ query.upper }}",
    "no query": each("[{{ loop.index }}] {{ d }}").removeprefix(HEAD),
    "the query changed": each("[{{ loop.index }}] {{ d }}").replace("query", "query | title"),
}


@pytest.mark.parametrize("body", BAD_LISTS.values(), ids=BAD_LISTS)
def test_a_list_that_lacks_something_is_refused(tmp_path: Path, body: str) -> None:
    with pytest.raises(PromptError, match=r"own\.toml' makes a prompt of \d+ documents? with|that"):
        load(tmp_path, body)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[{{ loop.index }}] {{ d }}", "direct"),
        ("{{ loop.index }}. {{ d }}", "direct"),
        ("Document {{ loop.index }} of {{ count }}:\n{{ d }}\n", "direct"),
        ("<doc id='{{ loop.index }}'>{{ d }}</doc>", "direct"),
        ("{{ d }} [{{ loop.index }}]", "direct"),
        ("[{{ loop.index }}] {{ d }} [{{ loop.index }}]", "explain"),
        ("[{{ loop.index }}] {{ d or 'no text' }}", "explain"),
        ("文档{{ loop.index }}：{{ d }}", "direct"),
        ("[{{ labels[loop.index0] }}] {{ d }}", "letters"),
        ("{{ labels[loop.index0] }}: {{ d }}", "letters"),
        ("[{{ loop.index }}] {{ d }}{{ '' if loop.last else ';' }}", "direct"),
    ],
)
def test_identifiers_may_stand_before_or_behind(tmp_path: Path, line: str, kind: Kind) -> None:
    assert "one" in load(tmp_path, each(line), kind)


@pytest.mark.parametrize(
    "end",
    ["[2] > [1]", "Form of the answer:\n[2] > [1] > [3]", "Such as [1] or [2]", "[1]", "[1], [2]"],
)
def test_the_form_of_an_answer_may_stand_behind_the_documents(tmp_path: Path, end: str) -> None:
    assert end in load(tmp_path, LISTED + end)


def test_examples_may_have_identifiers_before_the_documents(tmp_path: Path) -> None:
    assert "basil" in load(tmp_path, "[1] basil\n[2] parsley\nAnswer: [2]\n\n" + LISTED)


def test_an_order_of_its_own_is_no_fault_where_identifiers_go_with_it(tmp_path: Path) -> None:
    body = each("[{{ loop.revindex }}] {{ d }}").replace("documents", "documents | reverse")

    assert load(tmp_path, body) == "q\n[2] two\n[1] one\n"


@pytest.mark.parametrize("most", [2, 26])
def test_letters_are_needed_where_letters_are_read(tmp_path: Path, most: int) -> None:
    with pytest.raises(PromptError, match=r"without an identifier such as \[A\] at document 1"):
        load(tmp_path, LISTED, "letters", most)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("binary", "wanted"),
        ("binary", "example"),
        ("letters", "example"),
        ("graded", "labels"),
        ("direct", "labels"),
        ("likelihood", "query"),
    ],
)
def test_a_variable_that_a_kind_has_not_is_refused(tmp_path: Path, kind: Kind, name: str) -> None:
    with pytest.raises(PromptError, match=rf"line 6 \(text\): unknown variable '{name}'"):
        load(tmp_path, f"{{{{ document }}}}\n{{{{ {name} }}}}", kind)


ENDLESS = {
    "a range": "{% for i in range(10**9) %}x{% endfor %}",
    "ranges in one another": "{% for i in range(90000) %}{% for j in range(90000) %}"
    "{% endfor %}{% endfor %}",
    "a long text": "{{ 'x' * 10**9 }}",
    "a long list": "{{ ([0] * 10**9) | length }}",
    "a large number": "{{ 9 ** 9 ** 9 }}",
    "a wide column": "{{ query.ljust(10000000000) }}",
    "a text that doubles": "{% set n = namespace(x='x') %}"
    "{% for i in range(200) %}{% set n.x = n.x * 2 %}{% endfor %}{{ n.x }}",
    "all documents for each, and for each": "{% for a in documents %}{% for b in documents %}"
    "{{ documents | join }}{% endfor %}{% endfor %}",
    "itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
}


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_what_would_take_all_time_or_memory_is_refused(tmp_path: Path, body: str) -> None:
    with pytest.raises(PromptError, match=r"own\.toml"):
        load(tmp_path, LISTED + body)


FAILING = {
    "syntax": ("{% for d %}", 7),
    "unclosed": ("\n{{ query", 8),
    "unknown variable": ("\n\n{{ dokuments }}", 9),
    "unknown filter": ("{{ query | shout }}", 7),
    "attribute": ("\n{{ query.author }}", 8),
    "type": ("{{ query + 1 }}", 7),
    "call": ("\n\n\n{{ query() }}", 10),
    "forbidden": ("{{ query.__class__.__mro__ }}", 7),
    "example": ("{% for e in examples %}{% endfor %}{{ examples[0].query }}", 7),
    "another file": ("{% include 'other' %}", 7),
    "a base": ("{% extends 'other' %}", 7),
    "a macro elsewhere": ("\n{% from 'other' import name %}", 8),
    "some wanted number": ("{{ 1 // (wanted - 7) }}", 7),
    "chance": ("{{ [1, 2] | random }}", 7),
    "text by chance": ("{{ lipsum() }}", 7),
}


@pytest.mark.parametrize(("body", "line"), FAILING.values(), ids=FAILING)
def test_what_fails_is_named_with_its_line(tmp_path: Path, body: str, line: int) -> None:
    # The list before it takes lines 5 and 6 of the file.
    text = f"{HEAD}{{% for d in documents %}}{LINE.strip()} {{% endfor %}}" + body
    with pytest.raises(PromptError) as caught:
        load(tmp_path, text)

    said = str(caught.value)
    assert f"own.toml', line {line - 1} (text): " in said
    assert "\n" not in said


def test_an_unknown_variable_is_told_from_the_one_that_was_meant(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=r"unknown variable 'docs'; did you mean 'documents'"):
        load(tmp_path, "{% for d in docs %}{{ d }}{% endfor %}")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("name = 'own'\nversion = 1", "own.toml' needs 'text'"),
        ("version = 1\ntext = 'x'", "own.toml' needs 'name'"),
        ("name = 'own'\ntext = 'x'", "own.toml' needs 'version'"),
        ("", "own.toml' needs 'name'"),
        ("name = 'own'\nversion = 1\ntxt = 'x'", "unknown key 'txt'; did you mean 'text'?"),
        ("name = 'own'\nversion = 1\nlanguages = ['en']", "did you mean 'language'?"),
        ("name = 'own'\nversion = 1\ntext = 7", "text can't be 7"),
        ("name = 'own'\nversion = true\ntext = 'x'", "version can't be True"),
        ("name = ''\nversion = 1\ntext = 'x'", "name can't be ''"),
        ("name = '\\u001b'\nversion = 1\ntext = 'x'".replace("'", '"'), "name can't be"),
        ("name = 'own'\nversion = 1\ntext = 'x'\nkind = 'list'", "its kind is 'list'"),
        ("name = 'own'\nversion = 1\ntext = 'x'\n[examples]\na = 1", "examples can't be"),
        ("name = 'own'\nname = 'own'", "is no TOML: Cannot overwrite a value"),
        ("a = " + "[" * 2000, "is no TOML"),
        ("version = " + "9" * 5000, "is no TOML"),
        ("#" * 1_000_001, "it has more than 1,000,000 bytes"),
    ],
)
def test_a_file_that_is_no_template_is_refused(tmp_path: Path, source: str, said: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(source)
    with pytest.raises(UsageError) as caught:
        load_template(str(path))

    assert said in str(caught.value)


@pytest.mark.parametrize("start", ["text = '''", "text = '''\n", "'text' = '''\n", '"text"="""'])
def test_lines_are_counted_in_the_file(tmp_path: Path, start: str) -> None:
    path = tmp_path / "own.toml"
    end = start.rstrip()[-3:]
    path.write_text(f"name = 'own'\n# text = 7\nversion = 1\n\n{start}one\n{{{{ nothing }}}}{end}")
    line = 6 + start.count("\n")
    with pytest.raises(PromptError, match=rf"line {line} \(text\): unknown variable 'nothing'"):
        load_template(str(path))


def test_how_an_editor_marks_the_start_and_ends_lines_is_no_matter(tmp_path: Path) -> None:
    source = f"name = 'own'\nversion = 1\ntext = '''\n{LISTED}'''"
    path = tmp_path / "own.toml"
    digests = set()
    for start, end in (("", "\n"), ("\ufeff", "\n"), ("", "\r\n"), ("\ufeff", "\r\n")):
        path.write_bytes((start + source.replace("\n", end)).encode())
        digests.add(load_template(str(path)).digest)

    assert len(digests) == 1
