"""Keys and values of cache entries are what other languages compute, and stay so."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.entries import (
    Origin,
    Scheme,
    Step,
    encode_origin,
    encode_value,
    entry_key,
    expiry,
    normalised,
    stored_docids,
)

# docs/publishing.md has these too: whoever computes keys elsewhere tests against them.
FROZEN = {
    "what causes tides": "455e1885180dd4dca20bc0b37f40f0217c677feca558522e9fd7dae71fcc8f38",
    " What\tCAUSES\u00a0tides ": "455e1885180dd4dca20bc0b37f40f0217c677feca558522e9fd7dae71fcc8f38",
    "Straße": "16d96952087774fee069b7585d3991b24d90c181c09b2129b4908c35baa7f0c0",
    "ＣＡＦＥ\u0301 ①": "0a61b4044a8a207c9f1e874d25aef49aadc3bca804cb8da860ce815d691bf4d5",
    "猫\u3000の\u3000写真": "db87ab2bce9f1fd169e3165ad4592ffc5a55e4c27e1cc080ccc0ef286e3ba46c",
    "İstanbul": "4a4df120f7d1f3c286f58651abfcec2aade892ace635f96f02b946c96e6e1f86",
    "": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
}
CANDIDATES = "4984cefec2e2847ba5391dbd4ba6d92cf4066e4d57dd7900bc8b3a569ae995d0"
"""Of d2, d7 and é."""
SCHEMES = st.builds(Scheme, st.frozensets(st.sampled_from(Step)), st.booleans())


@pytest.mark.parametrize("query", FROZEN)
def test_keys_are_frozen(query: str) -> None:
    assert entry_key(query, None, Scheme()) == FROZEN[query]


def test_keys_with_candidates_are_frozen() -> None:
    key = entry_key("Tides", ["é", "d7", "d2", "d7"], Scheme(candidates=True))
    assert key == f"{entry_key('tides', None, Scheme())}:{CANDIDATES}"


def test_candidates_are_needed_where_they_count() -> None:
    with pytest.raises(ValueError, match="include the set of candidates"):
        entry_key("tides", None, Scheme(candidates=True))


@given(st.text(), st.frozensets(st.sampled_from(Step)))
def test_normalising_twice_changes_nothing(query: str, steps: frozenset[Step]) -> None:
    once = normalised(query, steps)
    assert normalised(once, steps) == once


@given(st.text())
def test_no_step_leaves_a_query_as_it_is(query: str) -> None:
    assert normalised(query, frozenset()) == query


@given(st.text(), st.sampled_from(" \t\n\u00a0\u2003\u3000\u2028"))
def test_white_space_around_and_its_kind_do_not_matter(query: str, space: str) -> None:
    other = f"{space}{query.replace(' ', space * 2)}{space}"
    assert entry_key(other, None, Scheme()) == entry_key(query, None, Scheme())


@given(st.lists(st.text(max_size=5)))
def test_candidates_are_a_set(docids: list[str]) -> None:
    scheme = Scheme(candidates=True)
    assert entry_key("q", docids, scheme) == entry_key("q", [*reversed(docids), *docids], scheme)


@given(st.sets(st.text(max_size=5)), st.sets(st.text(max_size=5)))
def test_other_candidates_are_another_key(one: set[str], other: set[str]) -> None:
    scheme = Scheme(candidates=True)
    same = entry_key("q", one, scheme) == entry_key("q", other, scheme)
    assert same == (one == other)


@given(SCHEMES)
def test_schemes_survive_as_text(scheme: Scheme) -> None:
    assert Scheme.parse(str(scheme)) == scheme


@pytest.mark.parametrize("text", ["", "lower", "nfkc+x", "nfkc+", "none,nfkc"])
def test_what_is_no_scheme(text: str) -> None:
    with pytest.raises(ValueError, match=r"scheme|Step"):
        Scheme.parse(text)


@given(st.lists(st.text(), unique=True))
def test_values_are_json_and_are_read_back(docids: list[str]) -> None:
    origin = Origin("m", "t@1", 1_793_758_380.0, "ab")
    value = encode_value(orjson.dumps(docids), len(docids), encode_origin(origin))
    assert stored_docids(value) == docids
    assert json.loads(value) == {
        "docids": docids,
        "scores": list(range(len(docids), 0, -1)),
        "model": "m",
        "template": "t@1",
        "created": "2026-11-04T02:13:00Z",
        "job": "ab",
    }


def test_a_lone_surrogate_is_no_end_of_a_night() -> None:
    value = encode_value(b'["d1"]', 1, encode_origin(Origin("m\ud800", "t", 0.0, "")))
    assert json.loads(value)["model"] == "m?"


@pytest.mark.parametrize("value", [b"", b"[]", b"{}", b'{"docids":"d1"}', b'"x"', b"7"])
def test_what_is_no_value(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        stored_docids(value)


@given(st.text(), st.floats(0, 1))
def test_jitter_takes_off_at_most_its_share(query: str, jitter: float) -> None:
    key = entry_key(query, None, Scheme())
    end = expiry(key, 1000.0, 100.0, jitter)
    assert end is not None
    assert 1100.0 - 100.0 * jitter <= end <= 1100.0
    assert expiry(key, 1000.0, 100.0, jitter) == end
    assert expiry(key, 1000.0, None, jitter) is None


def test_jitter_spreads_ends_evenly() -> None:
    ends = [expiry(entry_key(f"q{n}", None, Scheme()), 0.0, 100.0, 0.5) for n in range(1000)]
    tenths = [sum(5 * n <= end - 50 < 5 * (n + 1) for end in ends if end) for n in range(10)]
    assert all(60 <= count <= 140 for count in tenths)
