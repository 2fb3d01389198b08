"""Turns the typed values of a Parquet row into texts and numbers, or says why one is neither."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from batchrank.formats.requests import UNUSABLE

_Place = tuple[str | int, ...]


def plain_row(row: Mapping[str, Any], number: int, read: Container[str]) -> dict[str, Any]:
    """Row `number` with the values that JSON has: binary as UTF-8 text, decimals as numbers.

    A value that is neither text nor number, and bytes that are not UTF-8, make the row one that
    `parse_request` refuses where `read` has its column and all names below that. Elsewhere only
    filters look: dates and times become texts of ISO 8601, what else is none is left out.
    """
    reader = _Reader(read)
    found = {name: reader.plain(value, (name,)) for name, value in row.items()}
    if reader.errors:
        found[UNUSABLE] = ["type", f"Row {number}, column {reader.errors[0]}."]
    return found


@dataclass(frozen=True, slots=True)
class _Reader:
    read: Container[str]
    errors: list[str] = field(default_factory=list)

    def plain(self, value: object, place: _Place) -> object:
        match value:
            case list() if value and isinstance(value[0], tuple):  # a map
                named = {self._scalar(key, (*place, "")): one for key, one in value}
                return self.plain({key: one for key, one in named.items() if key}, place)
            case list():
                return [self.plain(one, (*place, number)) for number, one in enumerate(value, 1)]
            case dict():
                return {str(key): self.plain(one, (*place, key)) for key, one in value.items()}
        return self._scalar(value, place)

    def _scalar(self, value: object, place: _Place) -> object:
        match value:
            case None | bool() | str() | int() | float():
                return value
            case Decimal():
                return int(value) if value == value.to_integral_value() else float(value)
            case UUID():
                return str(value)
            case bytes():
                try:
                    return value.decode()
                except UnicodeDecodeError as error:
                    said = f"byte {error.start + 1} (0x{value[error.start]:02x}) is not UTF-8"
            case _:
                said = f"a {type(value).__name__.lower()} is neither text nor number: cast it"
        if all(name in self.read for name in place if isinstance(name, str)):
            self.errors.append(f"{' '.join(map(str, place))}: {said}")
            return None
        return value.isoformat() if isinstance(value, date | time) else None
