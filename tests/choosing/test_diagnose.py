"""`diagnose` tells judges apart by their position bias, and says which pass is worth its cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts.judge import JudgeConfig, JudgeServer
from tests.choosing.conftest import QUERIES, asked
from tests.cli.running import Row, batchrank, judge, knowledge, serving, windows

JUDGES: dict[str, dict[str, Any]] = {
    "none": {},
    "chance": {"noise": 0.5, "noise_by": "request"},
    "first": {"bias": "first", "bias_strength": 0.8, "noise": 0.1, "noise_by": "request"},
    "u-shape": {"bias": "u-shape", "bias_strength": 0.8, "noise": 0.1, "noise_by": "request"},
}


@pytest.mark.parametrize(
    ("name", "leaning", "advice", "worth"),
    [
        ("none", "has no position bias that matters", "no extra pass is worth", "none"),
        ("chance", "has no position bias that matters", "a shuffled pass is worth", "shuffled"),
        ("first", "favours what stands first", "no extra pass is worth", "none"),
        ("u-shape", "favours both ends", "a shuffled pass may be worth", "shuffled"),
    ],
)
def test_one_sentence_tells_judges_apart(
    rows: list[Row], source: Path, name: str, leaning: str, advice: str, worth: str
) -> None:
    with serving(judge(rows, **JUDGES[name])) as server:
        text = asked("diagnose", source, "--base-url", server.url).out.decode()
        found = asked("diagnose", source, "--base-url", server.url, "--json").json
        # Three presentations of each query, and nothing for the second look.
        assert len(windows(server)) == 3 * QUERIES
    sentence = " ".join(text.rstrip().rsplit("\n\n", 1)[1].split())
    assert sentence == found["sentence"]
    assert leaning in sentence
    assert advice in sentence
    assert sentence.count(". ") == 0
    assert found["worth"] == worth
    assert "where the winners" in text
    assert max(map(len, text.splitlines())) <= 100


def test_grades_that_are_alike_are_no_bias(rows: list[Row], source: Path) -> None:
    known = knowledge(rows)
    coarse = {
        qid: {docid: float(round(value)) for docid, value in gains.items()}
        for qid, gains in known.gains.items()
    }
    server = JudgeServer(JudgeConfig(kind="vllm"), replace(known, gains=coarse))
    with serving(server) as running:
        found = asked("diagnose", source, "--base-url", running.url, "--json").json
    assert (found["favours"], [one["tau"] for one in found["alike"]]) == ("nothing", [1, 1, 1])


def test_figures_of_a_judge_without_bias(rows: list[Row], source: Path) -> None:
    with serving(judge(rows)) as server:
        found = asked("diagnose", source, "--base-url", server.url, "--json").json
    assert [one["tau"] for one in found["alike"]] == [1, 1, 1]
    assert [one["overlap"] for one in found["alike"]] == [1, 1, 1]
    assert found["pairs"] == {"same": 1, "echoed": 0, "against": 0}
    assert set(found["winners"]) == {"first stage", "reversed", "shuffled"}
    assert found["winners"]["first stage"] == found["winners"]["reversed"][::-1]
    assert all(sum(shares) == pytest.approx(1) for shares in found["winners"].values())
    assert (found["queries"], found["left_out"], found["quality"]) == (QUERIES, 0, None)


def test_judgements_decide_over_what_is_supposed(
    rows: list[Row], source: Path, judged: Path
) -> None:
    flags = ("--qrels", judged, "--json")
    with serving(judge(rows, **JUDGES["first"])) as server:
        found = asked("diagnose", source, "--base-url", server.url, *flags).json
    # Here the first stage knows nothing, so what a reversed pass evens out is no loss.
    assert found["worth"] == "reverse"
    assert (
        "a reversed pass is worth its cost, since a reversed pass changes nDCG@10 by +"
        in (found["sentence"])
    )
    gain = found["quality"]["fused"]["reversed"]["difference"]
    assert 0 < gain["low"] < gain["change"]
    assert set(found["quality"]["alone"]) == {"first stage", "reversed", "shuffled"}


def test_a_sample_is_spread_over_the_file_and_drawn_the_same_each_time(
    rows: list[Row], source: Path
) -> None:
    with serving(judge(rows)) as server:
        for _ in range(2):
            flags = ("--sample", "4", "--base-url", server.url, "--json")
            assert asked("diagnose", source, *flags).json["queries"] == 4
        assert len(windows(server)) == 12


def test_unusable_answers_are_no_diagnosis(rows: list[Row], source: Path) -> None:
    settings: dict[str, Any] = {"constraints": frozenset(), "malformed": ("prose",)}
    settings["sound_trials"] = True
    with serving(judge(rows, malformed_rate=1.0, **settings)) as server:
        result = batchrank("diagnose", source, "--base-url", server.url)
    assert (result.code, result.out) == (3, b"")
    assert "brought no usable ranking" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-",), "a sample is drawn from a file"),
        (("in.jsonl", "--job", "pointwise.toml"), "there is no order to lean on"),
        (("in.jsonl", "--qrels", "others"), "no query with judgements in --qrels"),
    ],
)
def test_what_can_not_be_diagnosed(
    source: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "pointwise.toml").write_text('strategy = "pointwise"\nanswer = "graded"\n')
    (tmp_path / "others").write_text("other 0 d 1\n")
    result = batchrank("diagnose", *arguments, "--base-url", "http://127.0.0.1:9")
    assert (result.code, said in result.err) == (2, True), result.err
