"""Text Embeddings Inference as the only model: its limits, its refusals, and what `doctor` says."""

from __future__ import annotations

import math
import zlib
from pathlib import Path

import pytest

from tests.cli.running import batchrank, docids, requests, rows_of, serving, written
from tests.tei_server import MOST_BYTES, tei

RERANK = ("--strategy", "pointwise", "--answer", "rerank")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store of a run is made in the working directory."""
    monkeypatch.chdir(tmp_path)


def relevance(text: str) -> float:
    """A fixed number of each beginning."""
    return zlib.crc32(text[:80].encode()) / 2**33


def test_requests_stay_within_its_limits_in_texts_and_bytes(tmp_path: Path) -> None:
    rows = requests(queries=1, candidates=70)
    words = {one["docid"]: one["doc"]["text"] for one in rows[0]["candidates"]}
    for one in rows[0]["candidates"]:
        one["doc"]["text"] += ' "word"' * 10_000
    rows[0]["candidates"][5]["doc"]["text"] += " word" * 500_000
    source = written(tmp_path / "in.jsonl", rows)
    with serving(tei(relevance)) as server:
        done = batchrank(
            *("run", source, "-o", tmp_path / "out", "--store", tmp_path / "s", *RERANK),
            *("--base-url", server.url, "--max-doc-tokens", 1_000_000, "--json"),
        )
        sizes, sent = server.sizes, server.texts
    assert done.code == 0, done.err
    assert max(sizes) <= MOST_BYTES
    assert max(map(len, sent)) > 100_000
    # A window of 32 is one call to whoever counts them, in however many requests.
    assert done.json["calls"] == 3
    (row,) = rows_of(tmp_path / "out")
    assert docids(row) == sorted(words, key=lambda docid: -relevance(words[docid] + ' "word"' * 9))


@pytest.mark.parametrize("command", ["run", "doctor"])
@pytest.mark.parametrize(
    "flags",
    [(), ("--answer", "logprobs"), ("--strategy", "pointwise", "--answer", "likelihood")],
)
def test_other_readings_are_refused_with_the_settings_that_it_serves(
    source: Path, command: str, flags: tuple[str, ...]
) -> None:
    with serving(tei(relevance)) as server:
        done = batchrank(command, source, "--base-url", server.url, *flags)
    assert done.code == 4
    assert "use --strategy pointwise --answer rerank" in done.err


@pytest.mark.parametrize("second", ["winners", "logprobs"])
def test_a_cascade_that_also_wants_text_is_refused(
    source: Path, tmp_path: Path, second: str
) -> None:
    job = tmp_path / "job.toml"
    job.write_text(
        '[[stage]]\nstrategy = "pointwise"\nanswer = "rerank"\n'
        f'[[stage]]\nstrategy = "sliding"\ndepth = 10\nanswer = "{second}"\n'
    )
    with serving(tei(relevance)) as server:
        where = ("--base-url", server.url, "--store", tmp_path / "s")
        done = batchrank("run", source, "--job", job, *where)
    assert done.code == 4
    assert "tei writes no text: it serves answer rerank alone" in done.err


def test_relevances_that_are_no_numbers_are_told_as_they_are(source: Path, tmp_path: Path) -> None:
    with serving(tei(lambda _: math.nan)) as server:
        where = ("--base-url", server.url, "--store", tmp_path / "s")
        done = batchrank("run", source, *where, *RERANK)
    assert done.code == 4
    assert "gives no relevances" in done.err
    assert "at /rerank: The server's answer holds no relevances: [{" in done.err
    assert "NaN" in done.err


def test_doctor_tells_the_pairs_that_it_measured(source: Path) -> None:
    with serving(tei(relevance)) as server:
        where = ("--base-url", server.url)
        told = batchrank("doctor", source, *where, *RERANK)
        found = batchrank("doctor", source, *where, *RERANK, "--json").json
    assert told.code == 0, told.err
    (speed,) = [line for line in told.out.decode().splitlines() if line.startswith("speed")]
    assert "pairs of query and document a second" in speed
    assert "tokens/s" not in speed
    assert "36 pairs of query and document" in told.out.decode()
    assert found["forecast"]["pairs"] == 36
    # Calls take their time with their pairs: all of the job were measured here.
    assert found["hours"] == pytest.approx(36 / found["pairs_per_second"] / 3600, rel=0.1)
