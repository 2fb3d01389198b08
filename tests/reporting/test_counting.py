"""What a report counts: moves, times, slots, samples, and the settings to repeat a run."""

from __future__ import annotations

import itertools
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.reporting.charts import latency_chart
from batchrank.reporting.facts import BANDS, TOP
from batchrank.reporting.movement import EvenSample, Moved
from batchrank.reporting.repeating import repeat_command, settings_toml
from batchrank.reporting.timing import latency, slots
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_spec
from batchrank.store.records import Run
from batchrank.values import QueryStatus, RankedQuery, Tally


def ranked(qid: str, order: tuple[int, ...]) -> RankedQuery:
    docids = tuple(f"d{place}" for place in range(len(order)))
    scores = (None,) * len(order)
    return RankedQuery(qid, "", docids, scores, order, QueryStatus.OK, Tally(ok=1))


def test_moves_are_counted_by_where_documents_came_from() -> None:
    moved = Moved(keep=2)
    same = tuple(range(120))
    for qid, order in {
        "same": same,
        "swapped": (1, 0, *same[2:]),
        "risen": (115, *(place for place in same if place != 115)),
        "turned": same[::-1],
    }.items():
        moved.add(ranked(qid, order))
    found = moved.result()
    assert (found.queries, found.unchanged, found.new_first) == (4, 1, 3)
    assert found.origins == (29, 0, 0, 0, 11)
    assert (found.fresh[0], found.fresh[1], found.fresh[TOP]) == (2, 1, 1)
    assert found.tau is not None
    assert 0.4 < found.tau < 0.5
    assert moved.most == ["turned", "risen"]


def test_what_did_not_move_is_not_worth_a_look() -> None:
    moved = Moved(keep=5)
    moved.add(ranked("one", (0,)))
    moved.add(ranked("same", (0, 1, 2)))
    assert moved.most == []
    assert moved.result().tau == 1.0
    assert Moved(keep=5).result().tau is None


@given(st.lists(st.permutations(range(30)), max_size=8))
def test_every_document_of_a_top_is_counted_once(orders: list[list[int]]) -> None:
    moved = Moved(keep=3)
    for number, order in enumerate(orders):
        moved.add(ranked(str(number), tuple(order)))
    found = moved.result()
    assert sum(found.origins) == TOP * len(orders)
    assert sum(found.fresh) == found.queries == len(orders)
    # What came up into a top is what stood below it.
    assert sum(n * count for n, count in enumerate(found.fresh)) == sum(found.origins[1:])
    assert len(found.origins) == len(BANDS)
    assert len(moved.most) <= 3


@given(st.integers(0, 500), st.integers(1, 20))
def test_a_sample_is_even_whatever_comes(count: int, most: int) -> None:
    sample: EvenSample[int] = EvenSample(most)
    for item in range(count):
        sample.add(item)
    items = sample.items
    assert min(count, (most + 1) // 2) <= len(items) <= most
    steps = {after - before for before, after in itertools.pairwise(items)}
    assert len(steps) <= 1
    assert items[:1] == ([0] if count else [])


@given(st.lists(st.floats(0, 400), min_size=1, max_size=200))
def test_every_call_is_in_a_bin(seconds: list[float]) -> None:
    found = latency(array("d", seconds))
    assert found is not None
    assert sum(found.counts) == found.calls == len(seconds)
    assert len(found.counts) <= 24
    assert found.median <= found.p90 <= found.p99 <= found.longest == max(seconds)
    assert found.p99 <= found.width * 24 * (1 + 1e-9) or found.p99 < 0.001


def test_no_call_takes_no_time() -> None:
    assert latency(array("d")) is None


@pytest.mark.parametrize("spread", [0.0, 0.001, 0.01, 1.0])
def test_the_names_of_two_times_stand_apart(spread: float) -> None:
    found = latency(array("d", [0.2] * 90 + [0.2 + spread] * 10))
    assert found is not None
    drawn = latency_chart(found)
    for svg in (drawn.wide, drawn.narrow):
        heights = {
            text.text: float(text.attrib["y"])
            for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
            if text.text in ("median", "99%")
        }
        assert abs(heights["median"] - heights["99%"]) >= 12


RUN = Run(2, 1, {}, "log of today.jsonl", "out.jsonl", 1000.0, 1400.0, 0, None)


def test_slots_of_interrupted_runs_stand_where_they_were() -> None:
    trace = {"step": 2.0, "in_flight": [4.0, 3.0], "capacity": [4.0, 4.0]}
    night = [
        replace(RUN, id=4, started=1500.0, summary={"trace": {**trace, "in_flight": []}}),
        replace(RUN, id=3, started=1400.0, summary={"trace": trace}),
        replace(RUN, id=2, started=1200.0, summary=None),
        replace(RUN, id=1, started=1000.0, summary={"trace": trace}),
    ]
    found = slots(night)
    assert [one.began for one in found] == [0.0, 400.0]
    assert found[0].in_flight == (4.0, 3.0)


@pytest.mark.parametrize(
    "given_settings",
    [
        {},
        {"top_k": 3},
        {"top_k": 300, "window_size": 30},
        {"strategy": "sliding", "stride": 5, "passes": "forward,reverse"},
        {"strategy": "setwise", "top_k": 7, "method": "insertion"},
        {"strategy": "pairwise", "depth": 50, "yes": True},
        {"strategy": "single", "depth": 40},
        {"strategy": "pointwise", "answer": "yesno", "thinking": "off", "max_doc_tokens": 90},
        {"template": "direct-zh", "re_ask": False, "thinking": "on"},
        {"incremental": True, "incremental_max_age": "36h", "top_k": 20},
        {"incremental": True},
        {"alpha": 0.5, "normalise": "min-max", "mmr": 0.7, "near_duplicates": 0.9},
        {
            "filter": {
                "top": 50,
                "allow": {"lang": ["en"]},
                "time": {"key": "day", "from": "2026-01-02"},
            }
        },
        {"stage": [{"strategy": "pointwise", "answer": "yesno"}, {"depth": 20}], "top_k": 5},
        {"stage": [{"strategy": "pointwise", "answer": "rerank"}, {"depth": 30}]},
    ],
)
def test_the_settings_shown_make_the_same_job(
    tmp_path: Path, given_settings: dict[str, Any]
) -> None:
    spec = JobSpec.model_validate(given_settings)
    names = [f"{stage.template_name}@1" if stage.template_name else "none" for stage in spec.stages]
    identity = {"model": "m:8b", "identity": "m \x1b]0;\n x", "template_digest": "ab"}
    settings = {**spec.ranking_settings(), **identity, "template": "+".join(names)}
    path = tmp_path / "repeat.toml"
    path.write_text(settings_toml(replace(RUN, settings=settings)))
    repeated = load_spec(path, {})
    assert repeated.ranking_settings() == spec.ranking_settings()
    assert repeated.model == "m:8b"
    if "top_k" not in given_settings:
        assert repeated.top_k is None
    assert [one.template_name for one in repeated.stages] == [
        one.template_name for one in spec.stages
    ]


def test_the_command_is_one_for_a_shell() -> None:
    told = repeat_command(RUN, "my.sqlite")
    assert told == (
        "batchrank run 'log of today.jsonl' --job repeat.toml --store my.sqlite -o out.jsonl"
    )
