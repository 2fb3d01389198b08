"""Words what is wrong with a setting in terms of the flag, or the key, that it was given by."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

Place = tuple[int | str, ...]


class Given(NamedTuple):
    """Where settings were given: those of `flags` as flags, the others in `file`."""

    flags: Container[str] = ()
    file: str = ""


NOWHERE = Given()

_WORDS = {
    "greater_than_equal": "must be at least {ge:.15g}",
    "greater_than": "must be more than {gt:.15g}",
    "less_than_equal": "must be at most {le:.15g}",
    "literal_error": "must be {expected}",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a number, not without end",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "is_instance_of": "must be a text",
    "path_type": "must be a path",
    "tuple_type": "must be a list",
    "mapping_type": "must be a table",
    "dict_type": "must be a table",
    "date_type": "must be a day such as 2026-01-31",
    "date_parsing": "must be a day such as 2026-01-31",
    "date_from_datetime_parsing": "must be a day such as 2026-01-31",
    "date_from_datetime_inexact": "must be a day such as 2026-01-31",
    "missing": "is missing",
    "extra_forbidden": "is no setting",
    "string_pattern_mismatch": "must be the name of an environment variable that holds the key",
}
_FLAG = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
_LONG_BITS = 200
_NEVER_TOLD = "api_key_env"
"""Where a name is asked for, people give the key itself: it must not get into any log."""
_METADATA = ("allow", "deny")
"""Tables of a filter whose values are those of documents, which may be empty."""


def complaint(error: ValidationError, flags: Container[str], where: str = "") -> str:
    """The first thing that is wrong; `flags` are the settings that were given as flags.

    A whole setting is named: `--window-size must be at least 2, got 1`, or `window_size ...` where
    it stands in the job spec that `where` names. What settings are to each other is said in the
    validator's own words.
    """
    first = error.errors()[0]
    place, value = first["loc"], first["input"]
    if first["type"] == "value_error":
        said = first["msg"].removeprefix("Value error, ")
        if not place:
            return said
        got = "" if isinstance(value, dict | list | tuple) else f" {value}"
        return f"{_name(place, flags, where)}{got}: {said}"
    context: Mapping[str, Any] = first.get("ctx", {})
    words = _WORDS.get(first["type"], "can't be used").format(**context)
    untold = first["type"] == "missing" or place[-1] == _NEVER_TOLD
    got = "" if untold else f", got {_told(value)}"
    return f"{_name(place, flags, where)} {words}{got}"


def as_keys(told: str, keys: Container[str]) -> str:
    """What is told of flags, to who has written them as `keys`: in a job spec or in Python."""

    def renamed(flag: re.Match[str]) -> str:
        name = flag[1].replace("-", "_")
        return name if name in keys else flag[0]

    return _FLAG.sub(renamed, told)


def unreadable_text(
    values: Mapping[str, object], flags: Container[str] = (), where: str = ""
) -> str | None:
    """What is wrong with the first text that is empty, or that no file or server can be named by.

    None where there is none.
    """
    for place, value in _parts(values, ()):
        if value in ("", [], ()) and not any(name in place for name in _METADATA):
            return f"{_name(place, flags, where)} is empty: give a value, or leave it out"
        if isinstance(value, str) and "\0" in value:
            got = "" if place[-1] == _NEVER_TOLD else f", got {_told(value)}"
            return f"{_name(place, flags, where)} holds a NUL character{got}"
    return None


def _parts(value: object, place: Place) -> Iterator[tuple[Place, object]]:
    yield place, value
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _parts(one, (*place, key))
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            yield from _parts(one, (*place, number))


def _name(place: Place, flags: Container[str], where: str) -> str:
    top = str(place[0])
    if top in flags:
        return f"--{top.replace('_', '-')}"
    # Of an entry of a list, as of [[stage]], people count from 1. A name in brackets, as `str`,
    # is pydantic's own for one of several types.
    name = " ".join(str(part + 1 if isinstance(part, int) else part) for part in place)
    return f"{where}: {name}" if where else name


def _told(value: object) -> str:
    """A value, cut where it is long."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, int) and value.bit_length() > _LONG_BITS:
        return "a far larger number"  # Python itself refuses to write one of thousands of digits
    return f"{value!r:.60}"
