"""Every reading over the wire: asked in each server's own way, ranked as a perfect judge ranks."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from scripts.judge import JudgeConfig, JudgeServer
from scripts.judge.config import Kind
from scripts.judge.pointwise import grade
from tests.cli.running import (
    Result,
    Row,
    batchrank,
    docids,
    gain,
    judge,
    rows_of,
    serving,
    windows,
)

POINTWISE = ("--strategy", "pointwise", "--answer")


def ranked(server: JudgeServer, source: Path, *flags: object) -> Result:
    """A run of `source` with a store beside it."""
    store = source.with_suffix(".sqlite")
    given = ("run", source, "--store", store, "--base-url", server.url, "--json")
    return batchrank(*given, *flags)


def output(source: Path) -> list[Row]:
    """The rows of the output beside `source`."""
    return rows_of(source.with_suffix(".ranked.jsonl"))


def by_gain(row: Row) -> list[str]:
    """The documents of an input row as a perfect judge ranks them."""
    qid = row["query"]["qid"]
    found = [candidate["docid"] for candidate in row["candidates"]]
    return sorted(found, key=lambda docid: -gain(qid, docid))


@pytest.mark.parametrize(
    ("kind", "reading"),
    [
        ("llama.cpp", "likelihood"),
        ("vllm", "likelihood"),
        ("sglang", "likelihood"),
        ("llama.cpp", "yesno"),
        ("vllm", "yesno"),
        ("ollama", "yesno"),
        ("llama.cpp", "rerank"),
        ("vllm", "rerank"),
    ],
)
def test_scores_of_documents_rank_them(
    rows: list[Row], source: Path, kind: Kind, reading: str
) -> None:
    flags = ["--backend", "ollama"] if kind == "ollama" else []
    with serving(judge(rows, kind=kind)) as server:
        done = ranked(server, source, *POINTWISE, reading, *flags)
        again = ranked(server, source, *POINTWISE, reading, *flags)

    assert (done.code, again.code) == (0, 0), done.err
    assert [docids(row) for row in output(source)] == [by_gain(row) for row in rows]
    assert done.json["calls"] == (3 if reading == "rerank" else 36)
    assert done.json["completion_tokens"] <= {"rerank": 0, "yesno": 36}.get(reading, 36 * 20)
    assert again.json["calls"] == 0


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm", "ollama", "openai"])
def test_grades_rank_documents_and_ties_keep_their_order(
    rows: list[Row], source: Path, kind: Kind
) -> None:
    flags = ["--backend", "ollama"] if kind == "ollama" else []
    with serving(judge(rows, kind=kind)) as server:
        done = ranked(server, source, *POINTWISE, "graded", *flags)

    assert done.code == 0, done.err
    assert done.json["windows"]["ok"] == 36
    for row in output(source):
        keys = [
            (-int(grade(gain(row["qid"], document["docid"]))), document["first_stage_rank"])
            for document in row["ranking"]
        ]
        assert keys == sorted(keys)


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm", "ollama"])
def test_first_tokens_rank_a_window_for_one_token_each(
    rows: list[Row], source: Path, kind: Kind
) -> None:
    flags = ["--backend", "ollama"] if kind == "ollama" else []
    with serving(judge(rows, kind=kind)) as server:
        single = ("--strategy", "single", "--depth", "12", "--answer", "logprobs")
        done = ranked(server, source, *single, *flags)
        sent = windows(server)

    assert done.code == 0, done.err
    assert [docids(row) for row in output(source)] == [by_gain(row) for row in rows]
    assert (done.json["calls"], done.json["completion_tokens"]) == (3, 3)
    assert len(sent) == 3


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_explanation_is_kept_and_shown(
    rows: list[Row], source: Path, server: JudgeServer, language: str
) -> None:
    flags = ("--answer", "explain", "--template", f"explain-{language}")
    done = ranked(server, source, "--strategy", "single", "--top-k", "12", *flags)
    again = ranked(server, source, "--strategy", "single", "--top-k", "12", *flags)
    look = ("inspect", "q1", "--store", source.with_suffix(".sqlite"))
    shown = batchrank(*look).out.decode()

    assert (done.code, again.code) == (0, 0), done.err
    assert done.json["windows"]["ok"] == 3
    assert (done.json["calls"], again.json["calls"]) == (3, 0)
    # What the reasons name, the worst first, is no ranking; the last line is.
    assert [docids(row) for row in output(source)] == [by_gain(row) for row in rows]
    assert "answers the query better than what stands above" in shown
    assert {"en": "Ranking: [", "zh": "排序："}[language] in shown
    (asked,) = batchrank(*look, "--json").json[0]["asked"]
    assert len(asked["answer"]["text"].splitlines()) == 1 + 12 + 1


def test_an_explanation_without_its_last_line_is_no_ranking(rows: list[Row], source: Path) -> None:
    with serving(judge(rows, malformed_rate=1.0, malformed=("prose",))) as server:
        done = ranked(server, source, "--answer", "explain", "--max-fallback", "1")
    shown = batchrank("inspect", "q1", "--store", source.with_suffix(".sqlite")).out.decode()

    assert done.code == 0, done.err
    assert done.json["windows"]["fallback"] == 3
    assert "fallback (no-ranking)" in shown


def test_scores_are_shown_by_inspect(rows: list[Row], source: Path) -> None:
    with serving(judge(rows, kind="llama.cpp")) as server:
        ranked(server, source, *POINTWISE, "likelihood")
    look = ("inspect", "q1", "--store", source.with_suffix(".sqlite"))
    shown = batchrank(*look, "--json").json[0]

    assert batchrank(*look).out.decode().count("  scores  -") == 12
    scores = {
        window["window"]["shown"][0]: window["permutation"]["scores"][0]
        for window in shown["asked"]
    }
    order = docids(output(source)[0])
    assert len(scores) == 12
    assert all(scores[one] > scores[other] for one, other in pairwise(order))


def test_a_cascade_reranks_the_best_of_the_stage_before(
    rows: list[Row], source: Path, tmp_path: Path
) -> None:
    spec = tmp_path / "job.toml"
    spec.write_text(
        '[[stage]]\nstrategy = "pointwise"\nanswer = "likelihood"\ndepth = 10\n'
        "[[stage]]\nwindow_size = 5\ndepth = 5\n"
    )
    with serving(judge(rows, kind="llama.cpp")) as server:
        done = ranked(server, source, "--job", spec)
    told = batchrank("run", source, "--job", spec, "--dry-run", "--json").json
    shown = batchrank("inspect", "q1", "--store", source.with_suffix(".sqlite"), "--json").json[0]

    assert done.code == 0, done.err
    assert done.json["calls"] == told["calls"] == 3 * 11
    for row, given in zip(output(source), rows, strict=True):
        deep = [candidate["docid"] for candidate in given["candidates"]][:10]
        best = [docid for docid in by_gain(given) if docid in deep]
        assert docids(row) == [*best, *(f"{row['qid']}-d{place}" for place in (11, 12))]
        assert row["template"] == "likelihood-en@1+direct-en@1"
    assert [len(window["window"]["shown"]) for window in shown["asked"]] == [1] * 10 + [5]


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        ("likelihood", "gives no likelihood"),
        ("rerank", "gives no relevances; at /v1/rerank: The server answered 404"),
    ],
)
def test_a_server_that_can_not_is_told_apart(source: Path, reading: str, said: str) -> None:
    # Ollama, spoken to as any OpenAI-compatible server.
    with serving(JudgeServer(JudgeConfig(kind="ollama"))) as server:
        done = ranked(server, source, *POINTWISE, reading, "--backend", "openai")

    assert done.code == 4
    assert said in done.err


def test_windows_hold_no_more_letters_than_the_server_returns(
    rows: list[Row], source: Path
) -> None:
    with serving(judge(rows, kind="vllm")) as server:
        done = ranked(server, source, "--window-size", "24", "--answer", "logprobs")

    assert done.code == 0
    assert "windows hold 20 documents" in done.err


SINGLE = ("--strategy", "single", "--answer", "logprobs")


@pytest.mark.parametrize(
    ("kind", "flags", "code", "said"),
    [
        ("llama.cpp", (), 2, "answer logprobs tells at most 26 of them apart: set depth to 26 or"),
        ("llama.cpp", ("--depth", "27"), 2, "up to depth 27, and answer logprobs"),
        ("llama.cpp", ("--depth", "26"), 0, None),
        ("vllm", ("--depth", "26"), 4, "returns 20 alternatives of a token, and strategy single"),
        ("vllm", ("--depth", "20"), 0, None),
        ("vllm", ("--window-size", "20"), 0, None),
        # A size that was asked for is a bound, and what it leaves out is said.
        ("vllm", ("--window-size", "24"), 0, "ranks the first 20 candidates of a query, not the"),
        ("llama.cpp", ("--window-size", "40"), 0, "ranks the first 26 candidates of a query, not"),
    ],
)
def test_one_window_over_all_is_what_the_server_can_read_or_refused(
    rows: list[Row], source: Path, kind: Kind, flags: tuple[str, ...], code: int, said: str | None
) -> None:
    with serving(judge(rows, kind=kind)) as server:
        done = ranked(server, source, *SINGLE, *flags)
        sent = windows(server)

    assert done.code == code, done.err
    assert bool(sent) is (code == 0)
    if said is None:
        assert "documents" not in done.err
    else:
        assert said in done.err


def test_a_cascade_whose_single_window_can_not_be_read_is_refused(
    source: Path, server: JudgeServer, tmp_path: Path
) -> None:
    spec = tmp_path / "job.toml"
    last = '[[stage]]\nstrategy = "single"\nanswer = "logprobs"\ndepth = '
    spec.write_text(f"[[stage]]\ndepth = 100\n{last}30\n")
    beyond = ranked(server, source, "--job", spec)
    spec.write_text(f"[[stage]]\ndepth = 100\n{last}10\n")
    within = ranked(server, source, "--job", spec)

    assert beyond.code == 2
    assert "up to depth 30, and answer logprobs tells at most 26 of them apart" in beyond.err
    assert within.code == 0, within.err


@pytest.mark.parametrize("flags", [(), ("--window-size", "95"), ("--answer", "full")])
def test_a_context_that_leaves_candidates_out_of_a_single_window_is_said(
    source: Path, server: JudgeServer, flags: tuple[str, ...]
) -> None:
    done = ranked(server, source, "--strategy", "single", *flags)
    other = ranked(server, source, "--window-size", "95")

    assert (done.code, other.code) == (0, 0), done.err
    fitted = re.search(r"windows to (\d+) documents", done.err)
    assert fitted is not None
    assert f"single ranks the first {fitted[1]} candidates of a query, not the others" in done.err
    assert "windows to" in other.err
    assert "single" not in other.err


@pytest.mark.parametrize("reading", [("--answer", "logprobs"), (*POINTWISE, "yesno")])
def test_one_alternative_is_none(rows: list[Row], source: Path, reading: tuple[str, ...]) -> None:
    with serving(judge(rows, alternatives=1)) as server:
        done = ranked(server, source, *reading)

    assert done.code == 4
    assert "returns fewer than two log-probabilities" in done.err


def test_few_alternatives_make_small_windows(rows: list[Row], source: Path) -> None:
    with serving(judge(rows, alternatives=5)) as server:
        done = ranked(server, source, "--answer", "logprobs")

    assert done.code == 0, done.err
    assert "windows hold 5 documents" in done.err
    assert done.json["windows"]["ok"] == sum(
        done.json["windows"][status] for status in ("ok", "repaired", "fallback", "error")
    )


@pytest.mark.parametrize(
    "flags",
    [
        ("--strategy", "topdown", "--window-size", "6"),
        ("--strategy", "tournament", "--window-size", "6", "--tournaments", "3"),
        ("--strategy", "setwise", "--window-size", "4", "--winners", "5"),
        ("--strategy", "setwise", "--window-size", "4", "--method", "insertion", "--top-k", "3"),
        ("--strategy", "pairwise", "--depth", "10", "--winners", "2"),
        ("--strategy", "single"),
        ("--merge-passes", "adaptive:2", "--window-size", "6"),
        ("--preset", "fast"),
    ],
)
def test_every_strategy_runs_is_foretold_and_replayed(
    rows: list[Row], source: Path, server: JudgeServer, flags: tuple[str, ...]
) -> None:
    done = ranked(server, source, *flags)
    told = batchrank("run", source, *flags, "--dry-run", "--json")
    shown = batchrank("inspect", "q1", "--store", source.with_suffix(".sqlite"), "--json").json[0]

    assert (done.code, told.code) == (0, 0), done.err
    assert docids(output(source)[0])[0] in by_gain(rows[0])[:2]
    assert {window["permutation"]["status"] for window in shown["asked"]} == {"ok"}
    assert told.json["calls"] > 0
