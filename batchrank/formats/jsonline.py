"""Parses one line as JSON, and says in what way one is none."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from batchrank.errors import LineError
from batchrank.formats.lines import MAX_LINE
from batchrank.formats.wording import shown

_QID = re.compile(rb'"qid"\s*:\s*("(?:[^"\\]|\\.){1,200}"|-?\d{1,18}\b)')
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_MOST_DIGITS = 20
_NO_NUMBER = re.compile(r"-?(?:NaN|Infinity)")


def load_line(data: bytes) -> Any:
    """The value of a line. `NaN` and `Infinity`, which are not JSON, become floats of that name.

    Raises LineError with kind `json`, `encoding` or `size`, and the qid if one can be made out.
    """
    if len(data) > MAX_LINE:
        raise _failed(
            data, "size", f"The line is longer than {MAX_LINE >> 20} MB: shorten its documents."
        )
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _read_loosely(data, error)


def dump_line(value: Mapping[str, Any]) -> bytes:
    """A value that JSON has words for as a line."""
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:  # an integer beyond 64 bits
        return f"{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n".encode()


def _read_loosely(data: bytes, error: orjson.JSONDecodeError) -> Any:
    """Read a line that holds NaN or Infinity; say of any other in what way it is no JSON."""
    try:
        text = data.decode()
    except UnicodeDecodeError as wrong:
        byte = data[wrong.start]
        said = f"Byte {wrong.start + 1} (0x{byte:02x}) is not UTF-8."
        raise _failed(data, "encoding", said) from None
    column = error.pos + 1
    if "surrogate" in error.msg:
        raise _failed(
            data,
            "encoding",
            f"A \\ud800-\\udfff escape stands without its other half near column {column}: "
            "a character was cut in two.",
        )
    # The parser points at the token or, after a minus, at the character behind it.
    token = _NO_NUMBER.search(text, max(0, error.pos - 1), error.pos + 9)
    if token or "infinity" in error.msg:
        return _with_no_numbers(data, text)
    near = shown(text[max(0, error.pos - 20) : error.pos + 20])
    raise _failed(data, "json", f"The line is not JSON: {error.msg}, near {near}.")


def _with_no_numbers(data: bytes, text: str) -> Any:
    try:
        value = json.loads(text, parse_int=_integer)
        orjson.dumps(value)  # as strict as for every other line: no lone surrogates
    except json.JSONDecodeError as error:
        near = shown(text[max(0, error.pos - 20) : error.pos + 20])
        raise _failed(data, "json", f"The line is not JSON: {error.msg}, near {near}.") from None
    except (RecursionError, ValueError, orjson.JSONEncodeError) as error:
        raise _failed(data, "json", f"The line can't be read: {shown(str(error))}.") from None
    return value


def _integer(digits: str) -> float:
    """A whole number; one beyond 64 bits is a float, as orjson reads it."""
    if len(digits) > _MOST_DIGITS:
        return float(digits)
    value = int(digits)
    return value if _SMALLEST <= value <= _LARGEST else float(digits)


def _failed(data: bytes, kind: str, message: str) -> LineError:
    """The error of a line that can't be parsed, with the qid if one can still be made out."""
    qid = None
    if found := _QID.search(data, 0, 4096):
        try:
            qid = str(orjson.loads(found[1]))
        except orjson.JSONDecodeError:
            qid = None
    return LineError(kind, message, qid)
