"""A job spec that can't be used is refused in one line: the key, the file and what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from batchrank.errors import UsageError
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_spec

PYDANTIC = ("Input should", "a valid", "instance of", "Extra inputs", "Field required", "pydantic")
"""Words of the library's own messages."""


def refused(folder: Path, text: str) -> str:
    """What is said of a job spec that holds `text`."""
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        load_spec(path, {})
    said = str(raised.value)
    assert said.splitlines() == [said]
    assert said.startswith(f"job spec {path}"), said
    assert not any(word in said for word in PYDANTIC), said
    return said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[stage]\ndepth = 5", "stage must be a list of tables: write [[stage]]"),
        ('stage = "x"', "stage must be a list of tables: write [[stage]]"),
        ("stage = [1]", "stage must be a list of tables"),
        ("stage = []", "stage is empty: leave it out, or write [[stage]] tables"),
        ("endpoint = []", "endpoint is empty: leave it out, or write [[endpoint]] tables"),
        ("[endpoint]\nweight = 1", "write [[endpoint]]"),
        ("[[endpoint]]\nwieght = 1", "[[endpoint]]: unknown key 'wieght'; did you mean 'weight'?"),
        ("cost = 5", "cost must be a table: write [cost]"),
        ("[[cost]]\ngpus = 5", "cost must be a table: write [cost]"),
        ("[cost]\ngpus = 5", "cost gpu_hour is missing"),
        ("[filter.time]\nkye = 'd'", "[filter], [time]: unknown key 'kye'; did you mean 'key'?"),
        ("[filter]\nallow = 5", "filter allow must be a table"),
        ("[filter]\nlanguage = 5", "filter language must be a list"),
        ("[filter.time]\nkey = 'd'\nfrom = 'soon'", "must be a day such as 2026-01-31"),
        ("[filters]\ntop = 5", "unknown section [filters]; did you mean 'filter'?"),
        ('gate_qrels = ""', "gate_qrels is empty"),
        ("base_url = []", "base_url is empty"),
        ('model = "a\\u0000b"', "model holds a NUL character"),
        ('base_url = ["http://a", "http://b\\u0000"]', "base_url 2 holds a NUL character"),
        ("[[stage]]\nstrategy = 'sliding'\nstride = 20\nwindow_size = 20", "stage 1: stride 20"),
        ("depth = 2024-01-01", "depth must be a whole number"),
        ("a = " + "[" * 9999, "can't be read"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_file(
    tmp_path: Path, text: str, said: str
) -> None:
    assert said in refused(tmp_path, text)


def fields_of(*kinds: type) -> list[str]:
    """The settings that hold one of `kinds`."""
    return [
        name
        for name, field in JobSpec.model_fields.items()
        if set(kinds) & {field.annotation, *_parts(field.annotation)}
    ]


def _parts(annotation: Any) -> set[Any]:
    return {deep for part in get_args(annotation) for deep in (part, *_parts(part))}


@pytest.mark.parametrize("name", fields_of(int, float))
def test_true_is_no_number(tmp_path: Path, name: str) -> None:
    assert name in refused(tmp_path, f"{name} = true")


@pytest.mark.parametrize("name", fields_of(bool))
def test_a_number_is_neither_true_nor_false(tmp_path: Path, name: str) -> None:
    for value in ("1", '"yes"'):
        assert f"{name} must be true or false" in refused(tmp_path, f"{name} = {value}")


@pytest.mark.parametrize("name", sorted(JobSpec.model_fields))
def test_no_setting_is_empty_or_of_another_shape(tmp_path: Path, name: str) -> None:
    for value in ('""', '"\\u0000"', "[]", "{ wrong = [] }", "[[[]]]"):
        assert name in refused(tmp_path, f"{name} = {value}")
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} is empty"):
        load_spec(None, {name: ""})
    empty: tuple[Any, ...] = ("", [], ())
    for given in empty:
        with pytest.raises(UsageError, match=f"^{name} is empty: give a value, or leave it out$"):
            JobSpec(**{name: given})


def test_a_document_s_value_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text("[filter]\ndeny = { state = [''] }")
    assert load_spec(path, {}).filter is not None
