"""The forms: what a constraint lets through is what is read as strict."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.answers.forms import example, grammar, max_tokens, regex, schema, write
from batchrank.calls import Form
from batchrank.values import Status
from tests.answers.reading import reading

_FORMS = st.sampled_from(list(Form))


@st.composite
def _asked(draw: st.DrawFn) -> tuple[int, tuple[int, ...]]:
    """Draw a number of documents and the identifiers of a right answer."""
    documents = draw(st.integers(1, 120))
    wanted = draw(st.integers(1, min(documents, 25)))
    order = draw(st.permutations(range(1, documents + 1)))
    return documents, tuple(order[:wanted])


@given(_asked(), _FORMS)
def test_a_strict_answer_of_any_form_reads_back(
    asked: tuple[int, tuple[int, ...]], form: Form
) -> None:
    documents, identifiers = asked
    found = reading(write(form, identifiers), documents, len(identifiers))
    assert found.named == identifiers
    assert found.status is Status.OK
    assert found.notes == ()


@given(_FORMS, st.integers(1, 100))
def test_an_example_is_strict_short_and_in_range(form: Form, wanted: int) -> None:
    shown = min(wanted, 5)
    found = reading(example(form, wanted), wanted, shown)
    assert found.status is Status.OK
    assert len(found.named) == shown


def _as_regex(gbnf: str) -> str:
    """Translate the two rules of a grammar to a regular expression."""
    root, identifier = (line.partition(" ::= ")[2] for line in gbnf.splitlines())
    alternatives = identifier.replace(" | ", "|").replace(" ", "").replace('"', "")
    return root.replace('"', "").replace(" ", "").replace("id", f"(?:{alternatives})")


@given(st.integers(1, 1200))
def test_one_identifier_is_any_document_and_nothing_else(documents: int) -> None:
    numbers = [str(number) for number in range(documents * 10 + 11)]
    numbers += ["", "01", "1 ", "-1", "1,1", "a"]
    valid = {str(number) for number in range(1, documents + 1)}
    for pattern in (regex(documents, 1), _as_regex(grammar(documents, 1))):
        assert {number for number in numbers if re.fullmatch(pattern, number)} == valid


@given(_asked(), st.data())
def test_constraints_let_through_exactly_what_was_asked_for(
    asked: tuple[int, tuple[int, ...]], data: st.DataObject
) -> None:
    documents, identifiers = asked
    wanted = len(identifiers)
    answer = write(Form.GRAMMAR, identifiers)
    place = data.draw(st.integers(0, len(answer)))
    char = data.draw(st.sampled_from("0123456789, >[]\n"))
    other = answer[:place] + char + answer[place + data.draw(st.integers(0, 1)) :]
    parts = other.split(",")
    right = len(parts) == wanted and all(
        re.fullmatch("[1-9][0-9]*", part) and int(part) <= documents for part in parts
    )
    for pattern in (regex(documents, wanted), _as_regex(grammar(documents, wanted))):
        assert re.fullmatch(pattern, answer)
        assert bool(re.fullmatch(pattern, other)) == right


@pytest.mark.parametrize("documents", [1, 20, 100])
def test_the_schema_asks_for_exactly_the_wanted_identifiers(documents: int) -> None:
    asked = schema(documents, 1)
    assert asked["required"] == ["ranking"]
    assert asked["additionalProperties"] is False
    assert asked["properties"] == {
        "ranking": {
            "type": "array",
            "items": {"type": "integer", "enum": list(range(1, documents + 1))},
            "minItems": 1,
            "maxItems": 1,
        }
    }


@given(_asked(), _FORMS)
def test_the_limit_holds_every_answer_with_a_token_a_character(
    asked: tuple[int, tuple[int, ...]], form: Form
) -> None:
    documents, identifiers = asked
    limit = max_tokens(form, documents, len(identifiers))
    pieces = re.findall(r"[0-9]|[a-z]+| ?[^0-9a-z ]", write(form, identifiers))
    assert len(pieces) + 1 <= limit


def test_a_compact_answer_costs_what_was_measured() -> None:
    assert max_tokens(Form.GRAMMAR, 9, 4) == 8
    assert max_tokens(Form.JSON, 20, 4) >= 29
