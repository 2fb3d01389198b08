"""A job's settings: from a file and flags, refused with a reason, and keyed by what ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from batchrank.calls import Form
from batchrank.errors import UsageError
from batchrank.formats.toml import write_toml
from batchrank.prompts.loading import load_template
from batchrank.ranking.job import Job
from batchrank.serving.preflight import Profile
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_spec, load_templates, make_spec
from batchrank.spec.stagespec import USED
from tests.strategies.driving import docids, drove, useless

PROFILE = Profile(
    kind="llama.cpp",
    model="m",
    identity="llama.cpp digest=1",
    form=Form.GRAMMAR,
    context=8192,
    slots=4,
    window_size=20,
    max_doc_tokens=200,
    token_ratio=1.1,
)

RANKS: dict[str, object] = {
    "alpha": 0.5,
    "filter": {"top": 50},
    "mmr": 0.7,
    "near_duplicates": 0.9,
    "incremental": True,
    "answer": "full",
    "depth": 50,
    "max_doc_tokens": 100,
    "merge_passes": "forward,reverse",
    "passes": "reverse",
    "re_ask": False,
    "strategy": "sliding",
    "thinking": "on",
    "top_k": 5,  # of a merge fewer are asked for
    "window_size": 10,
    "winners": 3,
}
"""Settings that can change a ranking, each with a value that is not its default."""

RANKS_ELSEWHERE = {
    "engine",
    "ray_address",
    "workers_per_node",
    "num_gpus",
    "normalise",
    "incremental_max_change",
    "incremental_max_age",
    "stride",
    "template",
    "fit",
    "degrade",
    "stage",
    "preset",
    "tournaments",
    "method",
    "yes",
}
"""Those that do so in other ways, each tested by itself."""

RANKS_NOT: dict[str, object] = {
    "api_key_env": "KEY",
    "backend": "openai",
    "base_url": "http://127.0.0.1:9",
    "concurrency": 3,
    "cost": {"gpu_hour": 2.5},
    "dashboard": True,
    "dashboard_address": "0.0.0.0:8765",
    "deadline": "06:00",
    "endpoint": [{"base_url": "http://127.0.0.1:9"}, {"base_url": "http://127.0.0.1:10"}],
    "format": "csv",
    "output_format": "trec",
    "corpus": "corpus.jsonl",
    "topics": "topics.tsv",
    "run_file": "bm25.trec",
    "gate_qrels": "canaries.qrels",
    "input": "log.jsonl",
    "insecure": True,
    "limit": 7,
    "shard": "1/4",
    "log_format": "json",
    "max_failed": 0.5,
    "max_fallback": 0.5,
    "max_waiting": 3,
    "metrics_port": "9464",
    "metrics_textfile": "night.prom",
    "model": "m",  # the identity that a server discloses counts, not what it was called
    "min_overlap": 0.5,
    "output": "out.jsonl",
    "report": "report.html",
    "publish": {"target": "jsonl:cache.jsonl"},
    "priority": "background",
    "quiet_hours": "08:00-20:00",
    "store": "other.sqlite",
    "time_limit": "3h",
    "timeout": 1.0,
    "query_timeout": 1.0,
    "wait_for_lock": True,
    "wait_for_server": "1h",
}
"""Settings that can't, each with a value that is not its default."""


SPECIFIC = {
    "window_size": 12,
    "stride": 7,
    "winners": 3,
    "tournaments": 3,
    "method": "insertion",
    "passes": "forward,reverse",
    "merge_passes": "forward,reverse",
}
"""The settings of some strategies, each with a value that is not its default."""


def spec_of(**settings: object) -> JobSpec:
    """A spec as a job spec gives it, where settings that do nothing may stand; worded as flags."""
    return make_spec(settings, settings)


def key_of(**settings: object) -> bytes:
    """The key of a job with these settings."""
    return Job(spec_of(**settings), (load_template("direct-en"),), PROFILE).key


def key_of_stages(*stages: dict[str, object]) -> bytes:
    """The key of a cascade."""
    spec = spec_of(stage=list(stages))
    return Job(spec, load_templates(spec), PROFILE).key


def key_with(profile: Profile = PROFILE, template: str = "direct-en") -> bytes:
    """The key of a default job with another template, on a server found to be otherwise."""
    return Job(JobSpec(), (load_template(template),), profile).key


def written(folder: Path, text: str) -> Path:
    """A job spec that holds `text`."""
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    return path


class TestReading:
    """From TOML and flags to a spec."""

    def test_a_file_gives_settings_and_flags_win(self, tmp_path: Path) -> None:
        path = written(tmp_path, 'window_size = 12\ndepth = 40\nmodel = "m"\n')

        spec = load_spec(path, {"depth": 60, "model": None})

        assert (spec.window_size, spec.depth, spec.model) == (12, 60, "m")
        assert spec.stride == JobSpec().stride

    @pytest.mark.parametrize(
        ("text", "fraction"),
        [('"5%"', 0.05), ('"0.05"', 0.05), ("0.05", 0.05), ("1", 1.0), ('" 12.5 % "', 0.125)],
    )
    def test_fractions_are_numbers_or_per_cent(
        self, tmp_path: Path, text: str, fraction: float
    ) -> None:
        spec = load_spec(written(tmp_path, f"max_fallback = {text}"), {})

        assert spec.max_fallback == pytest.approx(fraction)

    @pytest.mark.parametrize("value", ["5", "-1%", "101%", "five%", "nan", "%", 2, -0.1, []])
    def test_what_is_no_fraction_is_refused_by_its_flag(self, value: object) -> None:
        with pytest.raises(UsageError, match="--max-failed "):
            spec_of(max_failed=value)

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"window_size": 1}, "--window-size must be at least 2, got 1"),
            ({"window_size": 5000}, "--window-size must be at most 1000, got 5000"),
            ({"window_size": "many"}, "--window-size must be a whole number, got 'many'"),
            ({"depth": 2.5}, "--depth must be a whole number, got 2.5"),
            ({"timeout": float("inf")}, "--timeout must be at most 86400, got inf"),
            ({"timeout": float("nan")}, "--timeout must be at most 86400, got nan"),
            ({"timeout": 0}, "--timeout must be more than 0, got 0"),
            ({"answer": "som"}, "--answer must be 'winners', 'full'"),
            ({"re_ask": "perhaps"}, "--re-ask must be true or false, got 'perhaps'"),
            ({"model": 5}, "--model must be a text, got 5"),
            ({"output": 5}, "--output must be a text, got 5"),
            ({"max_fallback": "50"}, "--max-fallback 50: write 50% or 0.5"),
            ({"max_fallback": "often"}, "--max-fallback often: write a share such as 5% or 0.05"),
            ({"passes": "forward, forward"}, "has a pass twice"),
            ({"alpha": 1.5}, "--alpha must be at most 1, got 1.5"),
            ({"near_duplicates": 0}, "--near-duplicates must be more than 0, got 0"),
            ({"merge_passes": "shuffle:1,shuffle:1"}, "has a pass twice"),
        ],
    )
    def test_a_complaint_is_in_the_words_of_the_flag(
        self, settings: dict[str, object], said: str
    ) -> None:
        with pytest.raises(UsageError) as raised:
            load_spec(None, settings)
        assert said in str(raised.value)

    def test_a_complaint_about_a_job_spec_is_in_its_words(self, tmp_path: Path) -> None:
        for text, said in {
            "window_size = 1": "window_size must be at least 2, got 1",
            "[[stage]]\n[[stage]]\ndepth = 0": "stage 2 depth must be at least 1, got 0",
            "[cost]\ngpu_hour = inf": "cost gpu_hour must be a number, not without end, got inf",
            "[filter]\ntop = 0": "filter top must be at least 1, got 0",
            "[filter]\ntops = 5": "[filter]: unknown key 'tops'; did you mean 'top'?",
            "[filter.time]\nkey = 'day'": "needs a day in from, in to, or in both",
            "[filter.time]\nkey = 'd'\nfrom = 2024-02-01\nto = '2024-01-31'": "is after to",
            "[run]\ndepth = 5": "unknown section [run]; settings stand at the top",
        }.items():
            with pytest.raises(UsageError) as raised:
                load_spec(written(tmp_path, text), {})
            assert said in str(raised.value)

    def test_an_address_is_one_however_it_is_given(self) -> None:
        told = [f"http://gpu1:8000{end}" for end in ("", "/", "/v1", "/v1/")]
        assert len({spec_of(base_url=url).target() for url in told}) == 1
        assert spec_of(base_url="http://gpu1:8001").target() != spec_of(base_url=told[0]).target()

    def test_a_window_is_never_larger_than_the_candidates_shown(self) -> None:
        assert spec_of(window_size=1000).largest == 100
        assert spec_of(window_size=1000, depth=1).largest == 2
        same = spec_of(window_size=100).ranking_settings()
        assert spec_of(window_size=1000).ranking_settings() == same

    @pytest.mark.parametrize(
        ("key", "nearest"),
        [("windowsize", "window_size"), ("window-size", "window_size"), ("mergepasses", "merge_p")],
    )
    def test_an_unknown_key_names_the_nearest(self, tmp_path: Path, key: str, nearest: str) -> None:
        with pytest.raises(UsageError, match=f"unknown key '{key}'; did you mean '{nearest}"):
            load_spec(written(tmp_path, f"{key} = 1"), {})

    def test_a_key_like_no_other_is_refused_without_a_guess(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"unknown key 'qqq'$"):
            load_spec(written(tmp_path, "qqq = 1"), {})

    def test_a_file_that_can_t_be_read_is_named(self, tmp_path: Path) -> None:
        for path in (tmp_path / "none.toml", tmp_path, written(tmp_path, "no toml")):
            with pytest.raises(UsageError, match="can't be read"):
                load_spec(path, {})

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"strategy": "best"}, "--strategy must be 'segmented', .*, got 'best'"),
            ({"passes": "forward,sideways"}, "'sideways' is no pass"),
            ({"merge_passes": "shuffle"}, "'shuffle' is no pass"),
            ({"strategy": "sliding", "stride": 20}, "stride 20 must be smaller than window_size"),
            ({"winners": 11}, "winners 11 must be at most half of window_size 20"),
            ({"merge_passes": "adaptive:1"}, "adaptive:N needs a number from 2"),
            ({"merge_passes": "adaptive:2,forward"}, "adaptive, or adaptive:N, stands alone"),
            ({"merge_passes": "forward, adaptive"}, "adaptive, or adaptive:N, stands alone"),
            ({"strategy": "topdown", "winners": 21}, "at most window_size 20"),
            (
                {"strategy": "pointwise"},
                "needs an answer to do so: one of yesno, graded, likelihood, rerank",
            ),
            ({"answer": "likelihood"}, "answer likelihood goes with strategy pointwise alone"),
            (
                {"answer": "likelihood", "strategy": "sliding"},
                "needs one of winners, full, logprobs, explain",
            ),
            ({"strategy": "pairwise"}, "depth to 30 or less, or say --yes"),
            ({"strategy": "setwise", "window_size": 2}, "thousands of calls .* say --yes"),
            ({"stage": [{"strategy": "setwise", "window_size": 2}]}, "thousands of calls"),
            ({"thinking": "on", "answer": "logprobs"}, "thinking must be off"),
            (
                {"strategy": "pointwise", "answer": "likelihood", "backend": "ollama"},
                "Ollama can't serve answer likelihood",
            ),
            ({"strategy": "pointwise", "answer": "rerank", "template": "x"}, "has no template"),
            ({"stage": [{}], "depth": 5}, r"depth: belongs in the \[\[stage\]\] tables"),
            ({"stage": [{"depth": 5}, {"depth": 6}]}, "at most that of the one before"),
            ({"backend": "embedded", "strategy": "sliding"}, "can only be asked for likelihoods"),
            ({"backend": "embedded", "answer": "winners"}, "can only be asked for likelihoods"),
            ({"backend": "embedded", "preset": "thorough"}, "can only be asked for likelihoods"),
            (
                {"backend": "embedded", "strategy": "segmented", "answer": "full"},
                "can only be asked for likelihoods",
            ),
            ({"stage": [{}], "preset": "fast"}, "preset: belongs"),
            ({"model_path": "m.gguf"}, "goes with backend embedded"),
            (
                {"base_url": ["http://a:1", "http://b:1", "http://a:1/v1/"]},
                "a:1/v1/ is named twice",
            ),
            ({"endpoint": [{"base_url": "http://a:1", "model": "m"}] * 2}, "a:1 is named twice"),
        ],
    )
    def test_values_that_can_t_be_are_refused(
        self, settings: dict[str, object], message: str
    ) -> None:
        with pytest.raises(UsageError, match=message):
            spec_of(**settings)

    @pytest.mark.parametrize(
        "settings",
        [
            {"strategy": "setwise", "window_size": 2, "yes": True},
            {"strategy": "setwise", "window_size": 2, "depth": 30},
            {"strategy": "setwise", "window_size": 2, "method": "insertion"},
            {"strategy": "setwise", "window_size": 3},
            {"backend": "embedded", "preset": "fast"},
        ],
    )
    def test_what_takes_few_calls_or_was_asked_for_is_taken(
        self, settings: dict[str, object]
    ) -> None:
        assert spec_of(**settings) is not None

    @pytest.mark.parametrize("strategy", list(USED))
    @pytest.mark.parametrize("name", list(SPECIFIC))
    def test_a_flag_that_its_strategy_does_not_use_is_refused(
        self, tmp_path: Path, strategy: str, name: str
    ) -> None:
        rest: dict[str, object] = {"strategy": strategy, "depth": 30}
        if strategy == "pointwise":
            rest["answer"] = "likelihood"
        given = {**rest, name: SPECIFIC[name]}
        flag = f"--{name.replace('_', '-')}"
        if name in USED[strategy]:
            key = key_of(**rest)
            assert load_spec(None, given).strategy == strategy
            if strategy != "pointwise":
                assert key_of(**given) != key
            return
        with pytest.raises(UsageError, match=f"{flag} does nothing with strategy {strategy}"):
            load_spec(None, given)
        # In a job spec it may stand for the strategy that a flag took the place of, and is no part
        # of the job.
        path = written(tmp_path, write_toml({name: SPECIFIC[name]}, "job"))
        assert load_spec(path, rest).strategy == strategy
        assert key_of(**given) == key_of(**rest)

    @pytest.mark.parametrize(
        ("settings", "remedy"),
        [
            ({"normalise": "min-max"}, {"alpha": 0.5}),
            ({"incremental_max_change": "10%"}, {"incremental": True}),
            ({"incremental_max_age": "3d"}, {"incremental": True}),
            ({"window_size": 6, "backend": "embedded"}, {"model_path": "m.gguf"}),
            ({"stride": 5}, {"strategy": "sliding"}),
            ({"stride": 5, "preset": "thorough"}, {"strategy": "sliding"}),
        ],
    )
    def test_a_flag_without_effect_is_refused_until_it_has_one(
        self, settings: dict[str, object], remedy: dict[str, object]
    ) -> None:
        with pytest.raises(UsageError, match="does nothing with"):
            load_spec(None, settings)
        assert load_spec(None, settings | remedy) is not None

    @pytest.mark.parametrize("preset", ["fast", "balanced", "thorough"])
    @pytest.mark.parametrize("strategy", [name for name in USED if name != "pointwise"])
    def test_what_a_preset_implies_is_never_refused(self, preset: str, strategy: str) -> None:
        given = {"preset": preset, "strategy": strategy, "depth": 30}
        assert load_spec(None, given).strategy == strategy

    def test_a_preset_stands_for_settings_and_given_ones_win(self) -> None:
        assert spec_of(preset="fast").depth == 60
        assert spec_of(preset="fast", depth=70).depth == 70
        thorough = spec_of(preset="thorough")
        assert (thorough.strategy, thorough.window_size) == ("tournament", 25)
        assert key_of(preset="balanced") == key_of()

    def test_the_embedded_backend_brings_a_model_for_likelihoods(self) -> None:
        own = spec_of(backend="embedded")

        assert own.uses_built_in_model
        assert (own.strategy, own.answer) == ("pointwise", "likelihood")
        assert not spec_of(backend="embedded", model_path="m.gguf").uses_built_in_model

    def test_a_filter_reads_back_from_what_is_written_of_it(self, tmp_path: Path) -> None:
        table = "top = 5\ndeny = { 'a.b' = ['x', 2] }\ntime = { key = 'day', from = 2024-02-01 }\n"
        spec = load_spec(written(tmp_path, f"[filter]\n{table}"), {})
        values = spec.model_dump(exclude_unset=True, by_alias=True)

        assert load_spec(written(tmp_path, write_toml(values, "chosen")), {}) == spec

    def test_an_unknown_key_of_a_stage_is_named(self, tmp_path: Path) -> None:
        path = written(tmp_path, "[[stage]]\nwindow = 5\n")

        with pytest.raises(UsageError, match=r"\[\[stage\]\]: unknown key 'window'"):
            load_spec(path, {})

    def test_a_large_stride_matters_only_where_windows_slide(self) -> None:
        assert spec_of(strategy="segmented", stride=20).stride == 20


class TestKey:
    """Two runs are one job exactly if their rankings can be exchanged."""

    def test_every_setting_is_known_to_rank_or_not(self) -> None:
        listed = {*RANKS, *RANKS_ELSEWHERE, *RANKS_NOT, "model_path"}

        assert listed == set(JobSpec.model_fields), "say here whether a new setting can rank"

    @pytest.mark.parametrize("name", RANKS)
    def test_what_ranks_is_another_job(self, name: str) -> None:
        assert key_of(**{name: RANKS[name]}) != key_of()

    @pytest.mark.parametrize("name", RANKS_NOT)
    def test_what_does_not_rank_is_the_same_job(self, name: str) -> None:
        assert key_of(**{name: RANKS_NOT[name]}) == key_of()

    def test_it_does_not_rank_where_clients_run(self) -> None:
        url = "http://127.0.0.1:8000"
        there = {"engine": "ray", "ray_address": "head:6379", "workers_per_node": 2}
        assert key_of(base_url=url, **there) == key_of(base_url=url)

    def test_all_that_rank_differ_from_each_other(self) -> None:
        assert len({key_of(**{name: value}) for name, value in RANKS.items()}) == len(RANKS)

    def test_a_model_file_counts_by_what_is_in_it(self) -> None:
        assert key_of(backend="embedded", model_path="here.gguf") == key_of()

    def test_a_stride_ranks_only_where_windows_slide(self) -> None:
        assert key_of(stride=5) == key_of()
        assert key_of(strategy="sliding", stride=5) != key_of(strategy="sliding")

    def test_what_one_strategy_uses_ranks_only_there(self) -> None:
        assert key_of(tournaments=5) == key_of(method="insertion") == key_of()
        for name, strategy, value in (
            ("tournaments", "tournament", 5),
            ("method", "setwise", "insertion"),
        ):
            assert key_of(strategy=strategy, **{name: value}) != key_of(strategy=strategy)

    def test_limits_of_incremental_nights_rank_only_in_those(self) -> None:
        for name, value in (("incremental_max_change", 0.1), ("incremental_max_age", "3d")):
            assert key_of(**{name: value}) == key_of()
            assert key_of(incremental=True, **{name: value}) != key_of(incremental=True)

    def test_how_scores_count_ranks_only_where_they_do(self) -> None:
        assert key_of(normalise="min-max") == key_of(filter={}) == key_of()
        assert key_of(alpha=0.5, normalise="min-max") != key_of(alpha=0.5)

    def test_a_permission_does_not_rank(self) -> None:
        few = {"strategy": "pairwise", "depth": 20}

        assert key_of(**few, yes=True) == key_of(**few)

    def test_a_cascade_ranks_by_its_stages(self) -> None:
        first = {"strategy": "pointwise", "answer": "likelihood", "depth": 100}
        keys = {
            key_of_stages(first, {"depth": 20}),
            key_of_stages(first, {"depth": 10}),
            key_of_stages(first, {"depth": 20, "answer": "full"}),
            key_of_stages(first | {"depth": 50}, {"depth": 20}),
        }

        assert len(keys) == 4

    def test_merges_rank_only_where_there_are_any(self) -> None:
        sliding = key_of(strategy="sliding")

        for name in ("winners", "merge_passes", "top_k"):
            assert key_of(strategy="sliding", **{name: RANKS[name]}) == sliding

    def test_how_many_are_written_ranks_only_where_fewer_are_asked_for(self) -> None:
        assert key_of(top_k=20) == key_of(top_k=100)
        assert key_of(top_k=10) == key_of()
        assert key_of(top_k=5, answer="full") == key_of(answer="full")

    def test_how_a_window_fits_ranks_only_by_what_fitted(self) -> None:
        assert key_of(fit="refuse") == key_of()
        assert key_with(replace(PROFILE, window_size=10)) != key_of()
        assert key_with(replace(PROFILE, max_doc_tokens=80)) != key_of()

    def test_passes_that_may_be_dropped_are_the_same_job(self) -> None:
        # What was ranked without them is kept under a key of its own.
        both = {"passes": "forward,reverse"}

        assert key_of(**both, degrade=True, deadline="06:00") == key_of(**both)

    def test_template_and_model_rank(self) -> None:
        assert key_with(template="direct-zh") != key_of()
        assert key_with(replace(PROFILE, identity="llama.cpp digest=2")) != key_of()
        assert key_with(replace(PROFILE, token_ratio=1.2)) != key_of()

    def test_a_server_s_slots_and_warnings_do_not(self) -> None:
        other = replace(PROFILE, slots=64, context=32768, warnings=("slow",))

        assert key_with(other) == key_of()


class TestTarget:
    """What a server was found to be is remembered for the settings that it was found with."""

    @pytest.mark.parametrize(
        "settings",
        [
            {"base_url": "http://127.0.0.1:9"},
            {"backend": "ollama"},
            {"model": "m"},
            {"window_size": 10},
            {"max_doc_tokens": 100},
            {"thinking": "on"},
            {"fit": "refuse"},
            {"template": "direct-zh"},
        ],
    )
    def test_another_server_or_fit_is_not_remembered(self, settings: dict[str, object]) -> None:
        assert spec_of(**settings).target() != JobSpec().target()

    def test_another_job_on_the_same_server_is(self) -> None:
        same = spec_of(passes="reverse", depth=50, output="o", timeout=1, max_failed="1%")

        assert same.target() == JobSpec().target()


class TestStrategy:
    """The strategy that settings describe."""

    def test_the_default_is_six_calls_in_two_rounds(self) -> None:
        _, rounds = drove(JobSpec().make_strategy(20), docids(100), useless)

        assert [len(windows) for windows in rounds] == [5, 1]

    def test_a_merge_is_asked_for_what_is_written(self) -> None:
        _, rounds = drove(spec_of(top_k=5).make_strategy(20), docids(100), useless)

        assert [window.wants for window in rounds[-1]] == [5]

    def test_passes_and_merge_passes_multiply(self) -> None:
        spec = spec_of(passes="forward,reverse", merge_passes="forward,shuffle:1,shuffle:2")

        _, rounds = drove(spec.make_strategy(20), docids(100), useless)

        assert [len(windows) for windows in rounds] == [10, 6]

    @pytest.mark.parametrize(
        ("window_size", "carried"), [(20, 10), (10, 5), (5, 3), (3, 2), (2, 1)]
    )
    def test_a_window_made_smaller_keeps_the_share_it_carries_on(
        self, window_size: int, carried: int
    ) -> None:
        spec = spec_of(strategy="sliding", window_size=20, stride=10)

        _, rounds = drove(spec.make_strategy(window_size), docids(50), useless)

        assert len(rounds[0][0].shown) == window_size
        assert rounds[0][0].wants == carried


@pytest.mark.parametrize(
    "given",
    [
        {"strategy": "pointwise", "answer": "yesno"},
        {"strategy": "pairwise", "yes": True},
        {"stage": [{"strategy": "pointwise", "answer": "yesno"}, {"depth": 20}]},
    ],
)
def test_incremental_needs_windows_with_room_for_the_earlier_best(
    given: dict[str, object],
) -> None:
    assert load_spec(None, given) is not None
    with pytest.raises(UsageError, match="incremental holds new documents"):
        load_spec(None, {**given, "incremental": True})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"engine": "ray"}, "needs one base_url"),
        ({"engine": "ray", "base_url": ["http://a", "http://b"]}, "needs one base_url"),
        ({"engine": "ray", "endpoint": [{"base_url": "http://a"}]}, "needs one base_url"),
        ({"engine": "ray", "base_url": "http://a", "backend": "embedded"}, "leave base_url out"),
        ({"engine": "ray", "base_url": "http://a", "num_gpus": 1}, "goes with .* backend embedded"),
        ({"backend": "embedded", "num_gpus": 1}, "goes with engine ray"),
        ({"engine": "ray", "backend": "embedded", "num_gpus": 1.5}, "whole number or a share"),
        ({"engine": "ray", "backend": "embedded", "num_gpus": -1}, "at least 0"),
        ({"ray_address": "head:6379"}, "go with engine ray"),
        ({"workers_per_node": 2}, "go with engine ray"),
        ({"engine": "ray", "base_url": "http://a", "workers_per_node": 0}, "at least 1"),
    ],
)
def test_a_cluster_needs_one_address_for_all_nodes(settings: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        spec_of(**settings)
