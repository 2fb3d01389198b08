"""Turns a grammar without recursion into the regular expression of the same texts."""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<literal>"(?:\\.|[^"\\])*")
    |(?P<class>\[(?:\\.|[^\]\\])*\])
    |(?P<rule>[A-Za-z][\w-]*)\s*::=
    |(?P<name>[A-Za-z][\w-]*)
    |(?P<sign>\{\d+(?:,\d*)?\}|[|()*+?.])
    |(?P<space>\s+)""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


@lru_cache(maxsize=1024)
def grammar_regex(grammar: str) -> str:
    """The regular expression for rule `root` of a GBNF grammar.

    Raises ValueError where the grammar is no GBNF, lacks a rule or refers to itself.
    """
    rules: dict[str, list[tuple[str, str]]] = {}
    body: list[tuple[str, str]] = []
    at = 0
    while at < len(grammar):
        token = _TOKEN.match(grammar, at)
        if token is None:
            raise ValueError(f"the grammar can't be read at {grammar[at : at + 20]!r}")
        at = token.end()
        kind = token.lastgroup or ""
        if kind == "rule":
            body = rules[token[kind]] = []
        elif kind not in ("comment", "space"):
            body.append((kind, token[kind]))
    return _expand("root", rules, ())


def _expand(name: str, rules: dict[str, list[tuple[str, str]]], above: tuple[str, ...]) -> str:
    if name not in rules or name in above:
        raise ValueError(f"the grammar's rule {name!r} is missing or recursive")
    parts: list[str] = []
    for kind, text in rules[name]:
        if kind == "literal":
            plain = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text[1:-1])
            parts.append(f"(?:{re.escape(plain)})")
        elif kind == "class":
            # Python warns of a bare bracket in a class.
            parts.append("[" + re.sub(r"(?<!\\)\[", r"\\[", text[1:]))
        elif kind == "name":
            parts.append(_expand(text, rules, (*above, name)))
        else:
            parts.append("(?:" if text == "(" else text)
    return f"(?:{''.join(parts)})"
