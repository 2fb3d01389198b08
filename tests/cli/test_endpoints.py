"""Several servers from the command line and a job spec: shared work, one model, clear refusals."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from aiohttp import web

from batchrank.errors import UsageError
from batchrank.serving.backoff import persist
from batchrank.serving.gather import HELD_UP_SECONDS
from batchrank.serving.warmup import TOLD_SECONDS
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_spec
from scripts.judge import JudgeConfig, JudgeServer
from scripts.judge.config import Fault, Kind
from tests.cli.running import (
    Row,
    batchrank,
    judge,
    knowledge,
    requests,
    rows_of,
    serving,
    windows,
)
from tests.endpoints.acting import Clock


@pytest.fixture
def rows() -> list[Row]:
    """More than the servers work on at once."""
    return requests(queries=20, candidates=12)


def run(source: Path, *flags: object) -> tuple[int, str, list[list[str]]]:
    """Exit code, what was said, and the rankings."""
    output = source.with_name("out.jsonl")
    store = source.with_name("store.sqlite")
    ended = batchrank("run", source, "--store", store, "-o", output, "--window-size", 6, *flags)
    found = rows_of(output) if output.exists() else []
    return ended.code, ended.err, [[d["docid"] for d in row["ranking"]] for row in found]


def both(*urls: str) -> list[str]:
    return [part for url in urls for part in ("--base-url", url)]


def test_servers_share_a_job_and_its_answers(source: Path, rows: list[Row]) -> None:
    with (
        serving(judge(rows, call_seconds=0.005)) as one,
        serving(judge(rows, call_seconds=0.005)) as two,
    ):
        code, said, rankings = run(source, *both(one.url, two.url))
        assert code == 0, said
        assert len(rankings) == 20
        shares = [len(windows(server)) for server in (one, two)]
        assert sum(shares) == 60
        assert min(shares) > 10
        # What one server answered is not asked of another.
        code, said, again = run(source, *both(two.url), "--fresh")
        assert (code, again) == (0, rankings)


def test_a_bad_server_among_several_is_told(source: Path, rows: list[Row]) -> None:
    bad = judge(
        rows, constraints=frozenset(), malformed_rate=1.0, malformed=("prose",), sound_trials=True
    )
    with serving(judge(rows, constraints=frozenset())) as good, serving(bad):
        flags = (*both(good.url, bad.url), "--no-re-ask", "--max-fallback", 1)
        code, said, _ = run(source, *flags, "--log-format", "json")
    assert code == 0, said
    lines = [orjson.loads(line) for line in said.splitlines()]
    fell = [line for line in lines if line.get("window")]
    assert {line["endpoint"] for line in fell} == {bad.url}
    summary = orjson.loads(source.with_name("out.jsonl.summary.json").read_bytes())
    counts = summary["servers"]
    assert counts[good.url]["bad"] == 0
    assert counts[bad.url] == {"windows": len(fell), "bad": len(fell)}
    assert counts[good.url]["windows"] + len(fell) == 60
    looked = batchrank("status", "--store", source.with_name("store.sqlite")).out.decode()
    for shown in (said, looked):
        assert "windows without a usable ranking by server: " in shown
        assert f"{good.url} 0 of {60 - len(fell)}" in shown
        assert f"{bad.url} {len(fell)} of {len(fell)}" in shown


def test_different_models_are_refused_unless_they_are_said_to_be_equal(
    source: Path, rows: list[Row]
) -> None:
    with (
        serving(judge(rows, kind="vllm")) as one,
        serving(judge(rows, kind="llama.cpp", model="same-weights")) as two,
    ):
        code, said, _ = run(source, *both(one.url, two.url))
        assert code == 4
        assert one.url in said
        assert two.url in said
        assert "equal = true" in said
        spec = source.with_name("job.toml")
        spec.write_text(
            f'[[endpoint]]\nbase_url = "{one.url}"\nweight = 2\n'
            f'[[endpoint]]\nbase_url = "{two.url}"\nequal = true\n'
        )
        code, said, rankings = run(source, "--job", spec)
        assert code == 0, said
        assert len(rankings) == 20
        # Each is asked by its own name and in its own form.
        assert min(len(windows(server)) for server in (one, two)) > 0
        assert {call.status for call in two.calls} == {200}
        # A flag wins over the tables.
        assert run(source, "--job", spec, "--base-url", one.url)[0] == 0


def test_one_server_of_two_is_enough_to_start(source: Path, rows: list[Row]) -> None:
    with serving(judge(rows)) as gone:
        pass
    with serving(judge(rows)) as there:
        code, said, rankings = run(source, *both(gone.url, there.url))
    assert code == 0, said
    assert len(rankings) == 20
    assert f"warning: {gone.url} does not answer" in said


class Hanging(JudgeServer):
    """Answers GETs, and none of its first POSTs: all of them with `many` None."""

    many: int | None = None

    async def _respond(self, request: web.BaseRequest, path: str) -> web.Response:
        if request.method == "POST" and path != "/api/show" and self.many != 0:
            if self.many is not None:
                self.many -= 1
            await asyncio.Event().wait()
        return await super()._respond(request, path)


class Patience(Clock):
    """Waits end at once, but for the one in which a server may be found to hang by itself."""

    async def sleep(self, seconds: float) -> None:
        """See `batchrank.clock.Clock`."""
        if seconds == HELD_UP_SECONDS - TOLD_SECONDS:
            await asyncio.Event().wait()
        await super().sleep(seconds)


@pytest.mark.parametrize("kind", ["vllm", "llama.cpp", "openai", "ollama"])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("many", [1, None])
def test_a_server_that_hangs_at_the_start_holds_up_no_other(
    source: Path,
    rows: list[Row],
    monkeypatch: pytest.MonkeyPatch,
    kind: Kind,
    place: int,
    many: int | None,
) -> None:
    """Wherever it stands among the servers; once it answers a probe it takes its share."""
    for module in ("connection", "firstserver"):
        monkeypatch.setattr(f"batchrank.serving.{module}.SystemClock", Patience)
    config = JudgeConfig(kind=kind, call_seconds=0.02, slots=2)
    bad = Hanging(config, knowledge(rows))
    bad.many = many
    with serving(bad) as hung, serving(JudgeServer(config, knowledge(rows))) as well:
        urls = [well.url]
        urls.insert(place, hung.url)
        flags = ("--backend", "ollama") if kind == "ollama" else ()
        code, said, rankings = run(source, *both(*urls), *flags)
        shares = [len(windows(server)) for server in (hung, well)]
    assert code == 0, said
    assert len(rankings) == 20
    assert shares[1] > 0
    assert sum(shares) == 60
    if many is None:
        assert shares[0] == 0
    if place == 0 or kind == "ollama":
        (told,) = (line for line in said.splitlines() if "the job starts without" in line)
        assert hung.url in told
        assert (shares[0] > 0) == (many is not None), said


def test_a_server_that_hangs_when_a_job_goes_on_holds_up_no_other(
    source: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("connection", "firstserver"):
        monkeypatch.setattr(f"batchrank.serving.{module}.SystemClock", Patience)
    config = JudgeConfig(kind="vllm")
    bad = Hanging(config, knowledge(rows))
    bad.many = 0
    with serving(bad) as hung, serving(JudgeServer(config, knowledge(rows))) as well:
        first, *others = source.read_bytes().splitlines()
        source.write_bytes(first)
        assert run(source, *both(hung.url, well.url))[0] == 0
        with closing(sqlite3.connect(source.with_name("store.sqlite"))) as store:
            store.execute("UPDATE runs SET exit = NULL, ended = NULL")  # as if it had been killed
            store.commit()
        source.write_bytes(b"\n".join((first, *others)))
        bad.many = None
        before = len(windows(hung))
        code, said, rankings = run(source, *both(hung.url, well.url))
        assert code == 0, said
        assert len(rankings) == 20
        assert f"the job starts without a server, until a probe proves it: {hung.url}" in said
        assert len(windows(hung)) == before


@pytest.mark.parametrize("fault", ["503", "reset", "html"])
def test_a_server_that_only_fails_leaves_the_start_to_another(
    source: Path, rows: list[Row], monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    async def at_once(attempt: Any, _: Any, random: Random) -> Any:
        async def no_pause(seconds: float) -> None:
            pass

        return await persist(attempt, no_pause, random)

    monkeypatch.setattr("batchrank.serving.preflight.persist", at_once)
    bad = judge(rows, error_rate=1.0, errors=(fault,), retry_after=0.0)
    with serving(bad) as failing, serving(judge(rows)) as well:
        code, said, rankings = run(source, *both(failing.url, well.url))
        assert code == 0, said
        assert (len(rankings), len(windows(well))) == (20, 60)
        (told,) = (line for line in said.splitlines() if "the job starts without a server" in line)
        assert failing.url in told
        code, said, _ = run(source, *both(failing.url), "--fresh")
        assert code == 4, said


def test_none_of_two_is_no_server(source: Path, rows: list[Row]) -> None:
    with serving(judge(rows)) as one, serving(judge(rows)) as two:
        urls = (one.url, two.url)
    code, said, _ = run(source, *both(*urls))
    assert code == 4
    assert f"no server answers: {', '.join(urls)}" in said


def test_background_is_said_where_it_has_no_effect(source: Path, rows: list[Row]) -> None:
    with serving(judge(rows, kind="llama.cpp")) as server:
        code, said, _ = run(source, "--base-url", server.url, "--priority", "background")
    assert code == 0
    assert f"{server.url} does not schedule by priority" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('base_url = "http://a"\n[[endpoint]]\nbase_url = "http://b"\n', "together"),
        ("[[endpoint]]\nweight = 2\n", "needs a base_url"),
        ('[[endpoint]]\nbase_url = "http://b"\nequal = true\n', "without equal"),
        ('[[endpoint]]\nbase_url = "http://b"\nwieght = 2\n', "wieght"),
        ('[[endpoint]]\nbase_url = "http://b"\nweight = 0\n', "more than 0"),
        ('quiet_hours = "8-20"\n', "08:00-20:00"),
        ('wait_for_server = "soon"\n', "soon"),
    ],
)
def test_settings_that_make_no_sense(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        load_spec(path, {})


def test_an_endpoint_has_the_job_s_model_and_key_unless_it_has_its_own(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        'model = "m"\napi_key_env = "KEY"\n[[endpoint]]\nbase_url = "http://a"\n'
        '[[endpoint]]\nbase_url = "http://b"\nmodel = "n"\napi_key_env = "OTHER"\n'
    )
    servers = load_spec(path, {}).servers
    assert [(s.base_url, s.model, s.api_key_env) for s in servers] == [
        ("http://a", "m", "KEY"),
        ("http://b", "n", "OTHER"),
    ]
    assert [s.base_url for s in JobSpec().servers] == [None]
