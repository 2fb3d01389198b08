"""Which day's night it is: today's, or yesterday's while that is to be finished."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from batchrank.errors import UsageError
from batchrank.nightly.day import broken_off, spec_of_the_night
from batchrank.spec.dates import DATED, dated, names_of
from batchrank.spec.loading import load_spec, make_spec
from batchrank.store.store import Store

TODAY = date(2026, 12, 1)
YESTERDAY = date(2026, 11, 30)
HOUR = 3600.0


def names(folder: Path, **more: str) -> dict[str, object]:
    """Names with `{date}` in them."""
    return {
        "input": f"{folder}/log-{{date}}.jsonl",
        "output": f"{folder}/out-{{date}}.jsonl",
        "store": f"{folder}/all.sqlite",
        **more,
    }


async def day_of(given: dict[str, object], now: float) -> str:
    """The day that the spec is about, as its input names it."""
    today, yesterday = (make_spec(dated(given, day)) for day in (TODAY, YESTERDAY))
    spec = await spec_of_the_night(today, yesterday, now)
    assert spec.input is not None
    return spec.input[-len("2026-11-30.jsonl") :].removesuffix(".jsonl")


async def began(
    given: dict[str, object],
    exit_code: int | None,
    day: date = YESTERDAY,
    summary: dict[str, object] | None = None,
) -> float:
    """Begin the run of a day's night, and end it unless it was killed; when it began."""
    spec = make_spec(dated(given, day))
    assert spec.input is not None
    assert spec.output is not None
    store = await Store.open(spec.store, create=True)
    run = await store.begin_run(
        b"job", {}, spec.input, spec.output, fresh=False, names=names_of(spec)
    )
    if exit_code is not None:
        await store.end_run(run.id, exit_code, summary or {})
    started = (await store.run()).started
    await store.close()
    return started


@pytest.mark.parametrize("store", ["{date}.sqlite", "all.sqlite"])
@pytest.mark.parametrize(
    ("exit_code", "hours", "expected"),
    [
        (None, 3, YESTERDAY),  # killed
        (75, 3, YESTERDAY),
        (1, 3, YESTERDAY),
        (0, 3, TODAY),
        (3, 3, TODAY),
        (75, 23, TODAY),  # the night is over
    ],
)
async def test_a_night_that_did_not_end_goes_on(
    tmp_path: Path, store: str, exit_code: int | None, hours: float, expected: date
) -> None:
    given = names(tmp_path, store=f"{tmp_path}/{store}")
    started = await began(given, exit_code)
    assert await day_of(given, started + hours * HOUR) == str(expected)


async def goes_on(given: dict[str, object], now: float) -> bool:
    """Whether a machine that is started now is to go on with a night."""
    today, yesterday = (make_spec(dated(given, day)) for day in (TODAY, YESTERDAY))
    return await broken_off(today, yesterday, now) is not None


@pytest.mark.parametrize("names_a_day", [True, False])
@pytest.mark.parametrize("day", [TODAY, YESTERDAY])
@pytest.mark.parametrize(
    ("exit_code", "hours", "time_is_up", "expected"),
    [
        (None, 0.1, False, True),  # killed
        (None, 17, False, True),
        (None, 18, False, False),  # that night is over
        (75, 3, False, True),  # the machine went down in good order
        (75, 3, True, False),  # the deadline came
        (1, 3, False, True),
        (4, 3, False, True),
        (3, 3, False, False),
        (0, 3, False, False),
    ],
)
async def test_a_night_that_broke_off_goes_on_after_a_boot(
    tmp_path: Path,
    names_a_day: bool,
    day: date,
    exit_code: int | None,
    hours: float,
    time_is_up: bool,
    expected: bool,
) -> None:
    given = names(tmp_path)
    if not names_a_day:
        given |= {"input": f"{tmp_path}/log.jsonl", "output": f"{tmp_path}/out.jsonl"}
    assert not await goes_on(given, 0)
    started = await began(given, exit_code, day, {"publishable": time_is_up})
    assert await goes_on(given, started + hours * HOUR) == expected


@pytest.mark.parametrize(
    ("told", "expected"), [("generation 3 of x", False), ("failed: gone", True), (None, True)]
)
@pytest.mark.parametrize("exit_code", [0, 75])
async def test_a_night_that_broke_off_while_publishing_goes_on_after_a_boot(
    tmp_path: Path, exit_code: int, told: str | None, expected: bool
) -> None:
    given = names(tmp_path) | {"publish": {"target": f"jsonl:{tmp_path}/cache.jsonl"}}
    started = await began(given, exit_code, TODAY, {"publishable": True})
    if told is not None:
        store = await Store.open(tmp_path / "all.sqlite")
        await store.end_step(1, "publish", told)
        await store.close()
    assert await goes_on(given, started + HOUR) == expected


async def test_another_jobs_night_does_not_go_on(tmp_path: Path) -> None:
    started = await began(names(tmp_path, input=f"{tmp_path}/other-{{date}}.jsonl"), None)
    assert not await goes_on(names(tmp_path), started + HOUR)


@pytest.mark.parametrize(
    ("told", "expected"),
    [("generation 3 of x", TODAY), ("failed: x can't be reached", YESTERDAY), (None, YESTERDAY)],
)
async def test_a_night_that_is_not_published_goes_on(
    tmp_path: Path, told: str | None, expected: date
) -> None:
    given = names(tmp_path) | {"publish": {"target": f"jsonl:{tmp_path}/cache.jsonl"}}
    started = await began(given, 0)
    if told is not None:
        store = await Store.open(tmp_path / "all.sqlite")
        await store.end_step(1, "publish", told)
        await store.close()
    assert await day_of(given, started + HOUR) == str(expected)


async def test_a_run_of_another_input_says_nothing_of_this_night(tmp_path: Path) -> None:
    started = await began(names(tmp_path, input=f"{tmp_path}/other-{{date}}.jsonl"), None)
    assert await day_of(names(tmp_path), started + HOUR) == str(TODAY)


@pytest.mark.parametrize("key", ["corpus", "topics", "run_file", "report", "target"])
@pytest.mark.parametrize(("begun", "expected"), [(YESTERDAY, YESTERDAY), (TODAY, TODAY)])
async def test_the_day_is_known_by_any_name_that_holds_one(
    tmp_path: Path, key: str, begun: date, expected: date
) -> None:
    given = names(tmp_path, input=f"{tmp_path}/log.jsonl", output=f"{tmp_path}/out.jsonl")
    value = f"jsonl:{tmp_path}/{{date}}"
    given |= {"publish": {"target": value}} if key == "target" else {key: value}
    started = await began(given, None, begun)
    today, yesterday = (make_spec(dated(given, day)) for day in (TODAY, YESTERDAY))
    spec = await spec_of_the_night(today, yesterday, started + HOUR)
    assert names_of(spec)[key] == f"jsonl:{tmp_path}/{expected}"


def test_a_password_is_no_name(tmp_path: Path) -> None:
    given = names(tmp_path) | {"publish": {"target": "redis://:secret@localhost/0"}}
    assert "secret" not in repr(names_of(make_spec(dated(given, TODAY))))


async def test_without_a_store_it_is_today(tmp_path: Path) -> None:
    assert await day_of(names(tmp_path), 0) == str(TODAY)


@pytest.mark.parametrize("name", [*DATED, "gate_qrels", "model_path", "metrics_textfile"])
@pytest.mark.parametrize("wrong", ["{day}", "{date}-{qid}", "{Date}", "{date}"])
def test_what_stands_for_nothing_in_a_name_is_refused(
    tmp_path: Path, name: str, wrong: str
) -> None:
    job = tmp_path / "job.toml"
    value = f"'sqlite:x-{wrong}.prom'"
    line = f"publish = {{ target = {value} }}" if name == "target" else f"{name} = {value}"
    job.write_text(f"{line}\nbackend = 'embedded'\n")
    if name in DATED and wrong == "{date}":
        assert "2026-12-01" in repr(load_spec(job, {}, TODAY))
        return
    with pytest.raises(UsageError, match=rf"job.toml: {name} has {{\w+}} in it: .* only [^\n]+$"):
        load_spec(job, {}, TODAY)


def test_braces_that_hold_no_name_are_a_files_own(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text("output = 'a{}b{c d}{e'\n")
    assert load_spec(job, {"input": "{x}.jsonl"}).output == "a{}b{c d}{e"
