"""No number in a flag of any command, in a job spec or from a server is beyond its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from annotated_types import Ge, Le
from pydantic import BaseModel

from batchrank.backends.loose import count
from batchrank.errors import UsageError
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_spec
from batchrank.spec.times import parse_duration
from tests.cli.running import batchrank
from tests.cli.walking import leaves

HUGE = ("-1", str(2**63), "1" + 30 * "0", 5000 * "9")
NO_NUMBERS = ("nan", "inf", "-inf", "1e400", "-1")


def numbers(kind: type) -> list[tuple[tuple[str, ...], str]]:
    """Every option of every command that takes one, by the command's words and the flag."""
    return [
        (words, option.opts[0])
        for words, command in leaves().items()
        for option in command.params
        if option.param_type_name == "option" and option.type_descriptor.annotation is kind
    ]


def required(words: tuple[str, ...], folder: Path) -> list[str]:
    """What the command can't be called without; the files are there."""
    (folder / "file").touch()
    known = {"--qrels": "file", "--output": "new", "--older-than": "30d"}
    given = []
    for option in leaves()[words].params:
        if not option.required:
            continue
        if option.param_type_name == "argument":
            given += ["file"] * (2 if option.nargs == -1 else 1)
        else:
            given += [option.opts[0], known[option.opts[0]]]
    return given


@pytest.mark.parametrize(("words", "flag"), numbers(int), ids=str)
def test_a_whole_number_beyond_reason_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], flag: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in HUGE:
        _refused(words, flag, value, required(words, tmp_path))


@pytest.mark.parametrize(("words", "flag"), numbers(float), ids=str)
def test_what_is_no_finite_number_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], flag: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in NO_NUMBERS:
        _refused(words, flag, value, required(words, tmp_path))


def _refused(words: tuple[str, ...], flag: str, value: str, needed: list[str]) -> None:
    ended = batchrank(*words, flag, value, *needed)
    assert (ended.code, ended.out) == (2, b""), (value, ended.err)
    (line,) = ended.err.splitlines()
    assert line.startswith("batchrank: error: ")
    assert flag in line


def test_there_are_such_flags() -> None:
    assert (("run",), "--depth") in numbers(int)
    assert (("label",), "--check") in numbers(float)


@pytest.mark.parametrize("number", [str(2**63), 5000 * "9"])
def test_a_run_of_a_store_has_a_number_of_a_reasonable_length(tmp_path: Path, number: str) -> None:
    (tmp_path / "judged").write_text("q 0 d 1\n")
    ended = batchrank("eval", f"{tmp_path}/s.sqlite#{number}", "--qrels", tmp_path / "judged")
    assert ended.code == 2
    assert len(ended.err.splitlines()) == 1


def models(shape: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model and those in its fields."""
    yield shape
    for field in shape.model_fields.values():
        for inner in _inner(field.annotation):
            yield from models(inner)


def _inner(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _inner(part)


def test_every_whole_number_of_a_job_spec_has_bounds() -> None:
    checked = 0
    for shape in models(JobSpec):
        for name, field in shape.model_fields.items():
            parts = (field.annotation, *_parts(field.annotation))
            if int in parts:
                kinds = {type(bound) for bound in field.metadata}
                assert {Ge, Le} <= kinds, f"{shape.__name__}.{name} needs ge= and le="
                checked += 1
    assert checked >= 10


def _parts(annotation: object) -> Iterator[object]:
    for part in get_args(annotation):
        yield part
        yield from _parts(part)


@pytest.mark.parametrize("text", ["depth = " + 5000 * "9", "depth = 0x" + 5000 * "f"])
def test_a_number_of_thousands_of_digits_in_a_job_spec(tmp_path: Path, text: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"job\.toml") as raised:
        load_spec(path, {})
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("text", [400 * "9" + "d", "9" * 30 + "h", "3651d"])
def test_a_duration_has_an_end(text: str) -> None:
    with pytest.raises(UsageError, match="at most 3650d"):
        parse_duration(text)


@pytest.mark.parametrize(
    "settings", [{"passes": "shuffle:" + 30 * "9"}, {"merge_passes": "adaptive:99999999999"}]
)
def test_numbers_in_passes_have_bounds(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is no "):
        load_spec(None, settings)


def test_counts_of_servers_are_counts() -> None:
    assert count(212) == 212
    for nonsense in (2**63, 2**64 - 1, 10**12, -1, 2.5, 1e300, True, "9", None):
        assert count(nonsense) is None
