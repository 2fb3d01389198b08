"""Describes each form of answer to a model and to its server: example, constraint, token limit.

The compact form is `3,1,2`: whatever stands between two numbers costs one token, and a comma is
one token in every common tokeniser, with no blank that some of them would count again.
"""

from __future__ import annotations

from functools import cache

from batchrank.calls import Form

_EXAMPLE = (4, 2, 5, 1, 3)
"""Neither rising nor falling, so that it hints at no order."""


def example(form: Form, wanted: int) -> str:
    """Show how an answer of `form` looks: a strict answer with `wanted`, at most five, ids.

    All its identifiers are at most `wanted`, so none is out of range.
    """
    return write(form, tuple(i for i in _EXAMPLE if i <= wanted))


def write(form: Form, identifiers: tuple[int, ...]) -> str:
    """Write `identifiers`, best first, as a strict answer of `form`."""
    match form:
        case Form.GRAMMAR | Form.REGEX:
            return ",".join(map(str, identifiers))
        case Form.JSON:
            return f'{{"ranking": [{", ".join(map(str, identifiers))}]}}'
        case Form.TEXT:
            return " > ".join(f"[{i}]" for i in identifiers)


@cache
def grammar(documents: int, wanted: int, lowest: int = 1) -> str:
    """Return a GBNF grammar for exactly `wanted` compact identifiers out of `lowest`..documents.

    It can't forbid that one is repeated: that is for the reader to see.
    """
    identifier = " | ".join(
        " ".join(f'"{low}"' if low == high else f"[{low}-{high}]" for low, high in digits)
        for digits in _numbers(documents, lowest)
    )
    more = f' ("," id){{{wanted - 1}}}' if wanted > 1 else ""
    return f"root ::= id{more}\nid ::= {identifier}\n"


@cache
def regex(documents: int, wanted: int, lowest: int = 1) -> str:
    """Return a regular expression for exactly `wanted` compact ids out of `lowest`..documents.

    Only classes, groups, alternatives and counts, which every constraint engine knows.
    """
    identifier = "|".join(
        "".join(low if low == high else f"[{low}-{high}]" for low, high in digits)
        for digits in _numbers(documents, lowest)
    )
    more = f"(,({identifier})){{{wanted - 1}}}" if wanted > 1 else ""
    return f"({identifier}){more}"


def schema(documents: int, wanted: int, lowest: int = 1) -> dict[str, object]:
    """Return a JSON schema for `{"ranking": [...]}` with exactly `wanted` integers.

    An enum is the one way to bound integers that every server enforces. `uniqueItems` is left out:
    llama.cpp ignores it and others refuse a schema that holds it.
    """
    return {
        "type": "object",
        "properties": {
            "ranking": {
                "type": "array",
                "items": {"type": "integer", "enum": list(range(lowest, documents + 1))},
                "minItems": wanted,
                "maxItems": wanted,
            }
        },
        "required": ["ranking"],
        "additionalProperties": False,
    }


def max_tokens(form: Form, documents: int, wanted: int) -> int:
    """Return how many generated tokens an answer may take, the end token included.

    Every digit is counted as a token of its own, as many tokenisers have it. Compact answers get
    exactly what they can need; JSON also room for blanks between items (29 tokens were measured
    for 4 of 20), text a little slack for a line break or an opening word.
    """
    digits = len(str(documents))
    match form:
        case Form.GRAMMAR | Form.REGEX:
            return wanted * (digits + 1)
        case Form.JSON:
            return wanted * (digits + 3) + 16
        case Form.TEXT:
            return wanted * (digits + 4) + 8


def _numbers(last: int, lowest: int) -> list[list[tuple[str, str]]]:
    """Split lowest..last (lowest 0 or 1) into alternatives, each a sequence of digit ranges."""
    width = len(str(last))
    alternatives = [[("0", "0")]] if lowest == 0 else []
    alternatives += [[("1", "9")] + [("0", "9")] * extra for extra in range(width - 1)]
    for place, digit in enumerate(str(last)):
        # Numbers that agree with `last` before `place` and are smaller at it.
        low, high = ("1" if place == 0 else "0"), chr(ord(digit) - 1)
        if low <= high:
            prefix = [(same, same) for same in str(last)[:place]]
            alternatives.append([*prefix, (low, high), *[("0", "9")] * (width - place - 1)])
    alternatives.append([(same, same) for same in str(last)])
    return alternatives
