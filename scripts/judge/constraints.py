"""Reads from a request the form its answer must have, and writes identifiers in that form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .config import Field
from .gbnf import grammar_regex

Labels = tuple[str, ...]

_STYLES = (
    ("[", "] > [", "]"),
    ("", " > ", ""),
    ("", ">", ""),
    ("[", "]>[", "]"),
    ("", " ", ""),
    ("", ",", ""),
    ("", ", ", ""),
    ("", "\n", ""),
    ("[", ",", "]"),
    ("[", ", ", "]"),
    ('{"ranking": [', ", ", "]}"),
    ('{"ranking":[', ",", "]}"),
    ("[", "] [", "]"),
    ("[", "][", "]"),
    ("", "", ""),
)
"""What stands before, between and behind identifiers, in the forms a pattern is tried with."""

_FREE = _STYLES[0]
_BARE = _STYLES[1]
_EXPLANATION = "The order follows how well each passage answers the query."


class UnanswerableError(Exception):
    """A constraint for which the judge can't write an answer."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """`write` puts identifiers, best first, into the form; `counts` are the numbers it can take.

    `counts` is empty where the form is free and takes any number.
    """

    constrained: bool
    counts: tuple[int, ...]
    write: Callable[[Labels], str]

    def count(self, wanted: int) -> int:
        """The number of identifiers to write that is nearest to `wanted`."""
        return min(self.counts, key=lambda count: abs(count - wanted), default=wanted)


def free_form(bare: bool) -> AnswerForm:
    """`[3] > [1]`, or `3 > 1` where an identifier must be the first token."""
    style = _BARE if bare else _FREE
    return AnswerForm(False, (), lambda labels: _styled(style, labels))


def explained(form: AnswerForm, conclusion: str) -> AnswerForm:
    """`form` as the last line, behind `conclusion`, of an answer that says why first.

    The reasons name identifiers too, the worst first, so that taking those for a ranking shows.
    """

    def write(labels: Labels) -> str:
        reasons = (
            f"[{label}] answers the query better than what stands above."
            for label in reversed(labels)
        )
        return "\n".join((_EXPLANATION, *reasons, conclusion + form.write(labels)))

    return replace(form, write=write)


def constrained_form(
    payload: Mapping[str, Any], honoured: AbstractSet[Field], labels: Labels
) -> AnswerForm | None:
    """The form that the constraint in a request demands, or None where none is obeyed.

    `labels` are the identifiers in the prompt. Raises UnanswerableError.
    """
    for name in sorted(honoured & payload.keys()):
        value = payload[name]
        if name in ("grammar", "ebnf"):
            return _grammar(value, labels)
        if name == "regex":
            return _pattern(value, labels)
        if name == "format":
            return _schema(value if isinstance(value, dict) else {"type": "object"}, labels)
        if name == "response_format" and value.get("type") != "text":
            return _response_format(value, labels)
        if name == "structured_outputs":
            return _structured_outputs(value, labels)
    return None


def _structured_outputs(value: Mapping[str, Any], labels: Labels) -> AnswerForm:
    if value.get("choice"):
        choice: str = value["choice"][0]
        return AnswerForm(True, (), lambda _: choice)
    if value.get("regex"):
        return _pattern(value["regex"], labels)
    if value.get("grammar"):
        return _grammar(value["grammar"], labels)
    schema = value.get("json")
    return _schema(json.loads(schema) if isinstance(schema, str) else schema or {}, labels)


def _response_format(value: Mapping[str, Any], labels: Labels) -> AnswerForm:
    named = value.get("json_schema", {})
    return _schema(named.get("schema") or value.get("schema") or {"type": "object"}, labels)


def _grammar(grammar: str, labels: Labels) -> AnswerForm:
    try:
        return _pattern(grammar_regex(grammar), labels)
    except ValueError as error:
        raise UnanswerableError(str(error)) from error


def _styled(style: tuple[str, str, str], labels: Sequence[str]) -> str:
    start, between, end = style
    return f"{start}{between.join(labels)}{end}"


@lru_cache(maxsize=4096)
def _pattern(pattern: str, labels: Labels) -> AnswerForm:
    try:
        regex = re.compile(pattern)
    except re.error as error:
        raise UnanswerableError(f"the regular expression can't be read: {error}") from error
    for style in _STYLES:
        counts = tuple(
            count
            for count in range(1, len(labels) + 1)
            if regex.fullmatch(_styled(style, labels[:count]))
        )
        if counts:
            return AnswerForm(True, counts, _writer(regex, style, labels))
    literal = _literal(regex)
    return AnswerForm(True, (), lambda _: literal)


def _literal(regex: re.Pattern[str]) -> str:
    """What a pattern without identifiers, so a probe, allows: often it is one text only."""
    for alternative in regex.pattern.split("|"):
        bare = re.sub(r"(?<!\\)(?:\((?:\?:)?|\)|\^|\$)", "", alternative)
        text = re.sub(r"(?s)\\(.)", r"\1", bare)
        if regex.fullmatch(text):
            return text
    raise UnanswerableError(f"no answer is known for the pattern {regex.pattern[:200]!r}")


def _writer(
    regex: re.Pattern[str], style: tuple[str, str, str], labels: Labels
) -> Callable[[Labels], str]:
    def write(order: Labels) -> str:
        text = _styled(style, order)
        # A pattern that allows one literal order only (a probe) gets that order.
        return text if regex.fullmatch(text) else _styled(style, labels[: len(order)])

    return write


def _schema(schema: dict[str, Any], labels: Labels) -> AnswerForm:
    array = _identifiers(schema)
    counts: tuple[int, ...] = ()
    if array is not None:
        least = array.get("minItems", 0)
        counts = tuple(range(least, max(least, array.get("maxItems", len(labels))) + 1))
    return AnswerForm(True, counts, lambda order: json.dumps(_instance(schema, order)))


def _identifiers(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The first array in a schema: where the identifiers go."""
    if schema.get("type") == "array":
        return schema
    return next(filter(None, map(_identifiers, schema.get("properties", {}).values())), None)


def _instance(schema: dict[str, Any], order: Labels) -> Any:
    """A value that a schema of objects, arrays of identifiers and plain values allows."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: _instance(part, order) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return _items(schema, order)
    plain: dict[str, Any] = {
        "string": _EXPLANATION,
        "integer": schema.get("minimum", 0),
        "number": schema.get("minimum", 0),
        "boolean": True,
        "null": None,
    }
    if kind not in plain:
        raise UnanswerableError(f"no answer is known for the schema type {kind!r}")
    return plain[kind]


def _items(array: dict[str, Any], order: Labels) -> list[Any]:
    items = array.get("items", {})
    numbers = items.get("type", "integer") == "integer"
    values: list[Any] = [int(label) if numbers and label.isdigit() else label for label in order]
    allowed: list[Any] = [items["const"]] if "const" in items else items.get("enum", [])
    if allowed:
        values = [value for value in values if value in allowed]
        # Fewer than demanded only in a probe, whose values are no identifiers of the prompt.
        values += allowed[:1] * (array.get("minItems", 0) - len(values))
    return values
