"""What a run says of the server it finds, what it adapts to, and what it keeps to itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from batchrank.running.timekeeper import Timekeeper
from scripts.judge import JudgeConfig, JudgeServer, Knowledge
from scripts.judge.model_calls import Judged
from tests.backends.servers import scripted
from tests.cli.conftest import Shell
from tests.cli.running import Row, batchrank, judge, knowledge, rows_of, serving, windows

KEY = "sk-not-to-be-seen-42"


@pytest.mark.parametrize("kind", ["openai", "vllm", "sglang", "llama.cpp", "ollama"])
def test_every_kind_of_server_gives_the_same_ranking(
    source: Path, shell: Shell, rows: list[Row], tmp_path: Path, kind: str
) -> None:
    expected, found = tmp_path / "vllm.jsonl", tmp_path / "found.jsonl"
    assert shell.run(source, "-o", expected).code == 0
    folder = tmp_path / "other"
    folder.mkdir()
    with serving(judge(rows, kind=kind)) as server:
        for suffix in ("", "/v1"):
            ended = Shell(folder, server.url + suffix).run(source, "-o", found)
            assert ended.code == 0, ended.err
            assert "warning" not in ended.err
            assert [row["ranking"] for row in rows_of(found)] == [
                row["ranking"] for row in rows_of(expected)
            ]
        # With and without /v1 it is one server with one model: nothing is asked twice.
        assert len(windows(server)) == 9


def test_ollama_is_spoken_to_natively(source: Path, rows: list[Row], tmp_path: Path) -> None:
    with serving(judge(rows, kind="ollama")) as server:
        ended = Shell(tmp_path, server.url).run(source, "--backend", "ollama")
        served = server.stats()["served"]
    assert ended.code == 0, ended.err
    assert f"waiting until {server.url} has loaded judge:latest" in ended.err
    assert served["POST /api/chat 200"] >= 9
    assert not any("/v1/chat" in route for route in served)


@pytest.mark.parametrize(
    ("context", "said", "windows_a_query"),
    [
        (3000, "documents are cut to 98 tokens (", 1),
        (1500, "documents are cut to 80 tokens and windows to 7 documents", 3),
    ],
)
def test_a_small_context_shortens_documents_then_windows(
    source: Path,
    rows: list[Row],
    tmp_path: Path,
    context: int,
    said: str,
    windows_a_query: int,
) -> None:
    flags = ("run", source, "--store", tmp_path / "store", "--base-url")
    with serving(judge(rows, kind="llama.cpp", context=context)) as server:
        refused = batchrank(*flags, server.url, "--fit", "refuse")
        assert refused.code == 4
        assert f"a slot of the server holds {context} tokens" in refused.err
        assert windows(server) == []
        ended = batchrank(*flags, server.url)
        assert ended.code == 0, ended.err
        assert said in ended.err
        assert {call.status for call in server.calls} == {200}
        assert len(windows(server)) == 3 * windows_a_query


def test_a_server_that_does_not_constrain_is_said_and_used(
    source: Path, rows: list[Row], tmp_path: Path, shell: Shell
) -> None:
    constrained, free = tmp_path / "constrained", tmp_path / "free"
    assert shell.run(source, "-o", constrained).code == 0
    with serving(judge(rows, constraints=frozenset(), model="free")) as server:
        ended = Shell(tmp_path, server.url).run(source, "-o", free)
    assert ended.code == 0, ended.err
    assert "warning: the server does not constrain answers" in ended.err
    assert [row["ranking"] for row in rows_of(free)] == [
        row["ranking"] for row in rows_of(constrained)
    ]


def test_a_model_that_only_reasons_is_no_server(source: Path, tmp_path: Path) -> None:
    message = {"content": "", "reasoning_content": "The user wants a ranking. Document 2 says"}
    chat = {"choices": [{"index": 0, "message": message, "finish_reason": "length"}]}
    script = {"/v1/models": {"data": [{"id": "thinker"}]}, "/v1/chat/completions": chat}
    with serving(scripted(script)) as server:
        ended = Shell(tmp_path, server.url).run(source)
    assert ended.code == 4
    assert "returns only its reasoning and no answer" in ended.err
    assert "--thinking on" in ended.err
    assert "Traceback" not in ended.err


def test_a_key_comes_from_the_environment_and_stays_there(
    source: Path, rows: list[Row], tmp_path: Path
) -> None:
    with serving(judge(rows, api_key=KEY)) as server:
        shell = Shell(tmp_path, server.url)
        without = shell.run(source)
        assert without.code == 4
        given = ("--api-key-env", "TEAM_KEY")
        common = ("--store", shell.store, "--base-url", server.url, *given)
        wrong = batchrank("run", source, *common, env={"TEAM_KEY": "sk-wrong-key-0"})
        assert wrong.code == 4
        right = batchrank("--debug", "run", source, *common, env={"TEAM_KEY": KEY})
        assert right.code == 0, right.err
        said = [
            without,
            wrong,
            right,
            shell.look("status", "--json"),
            shell.look("inspect", "q1", "--json"),
        ]
    for result in said:
        assert KEY not in result.out.decode() + result.err
        assert "sk-wrong-key-0" not in result.out.decode() + result.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert shell.store in files
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path


def test_https_for_a_server_that_speaks_http_is_told(source: Path, shell: Shell) -> None:
    url = shell.url.replace("http:", "https:")
    ended = batchrank("run", source, "--store", shell.store, "--base-url", url)
    assert ended.code == 4, ended.err
    assert "is its address http://?" in ended.err
    assert "not permitted" not in ended.err


@pytest.mark.parametrize("given", ["sk-SECRET-123", "sk_SECRET_123", "SECRET 123", "1SECRET"])
def test_a_key_in_place_of_a_variable_s_name_is_never_told(
    source: Path, tmp_path: Path, given: str
) -> None:
    job = tmp_path / "job.toml"
    job.write_text(f'[[endpoint]]\nbase_url = "http://127.0.0.1:9"\napi_key_env = "{given}"\n')
    store = tmp_path / "store.sqlite"
    url = "http://127.0.0.1:9"
    for flags in (["--api-key-env", given, "--base-url", url], ["--job", job]):
        result = batchrank("run", source, "--store", store, *flags)

        assert (result.code, "variable" in result.err) == (2, True)
        assert not any("SECRET" in path.read_text("latin-1") for path in store.parent.glob("s*"))
        assert "SECRET" not in result.err + result.out.decode()


class Stuck(JudgeServer):
    """Every second window is never answered, however often it is asked for."""

    def __init__(self, config: JudgeConfig, known: Knowledge) -> None:
        super().__init__(config, known)
        self.stuck: set[str] = set()
        self._fine: set[str] = set()

    async def _take_time(self, judged: Judged, digest: str) -> bytes:
        if judged.purpose == "window" and digest not in self._fine:
            if digest in self.stuck or len(self.stuck) < len(self._fine):
                self.stuck.add(digest)
                await asyncio.Event().wait()
            self._fine.add(digest)
        return await super()._take_time(judged, digest)


def test_a_query_that_takes_too_long_fails_and_the_next_run_goes_on(
    source: Path, rows: list[Row], tmp_path: Path
) -> None:
    output = tmp_path / "o.jsonl"
    with serving(Stuck(JudgeConfig(kind="vllm"), knowledge(rows))) as server:
        late = Shell(tmp_path, server.url).run(
            source, "-o", output, "--query-timeout", "1", "--max-failed", "1"
        )
        assert late.code == 0, late.err
        assert "batchrank check" not in late.err, "no line of the file is to blame"
        # They are dropped, and not sent again.
        bodies = windows(server)
        answered = set(bodies) - server.stuck
        assert server.stuck
        assert len(set(bodies)) == len(bodies)
    failed = [row for row in rows_of(output) if row["status"] == "failed"]
    assert {row["error"]["kind"] for row in failed} == {"timeout"}
    assert all(len(row["ranking"]) == len(rows[0]["candidates"]) for row in failed)

    with serving(judge(rows)) as server:
        assert Shell(tmp_path, server.url).run(source, "-o", output).code == 0
        assert {row["status"] for row in rows_of(output)} == {"ok"}
        # What was answered is kept, so no request is answered twice.
        assert answered
        assert not answered & set(windows(server))


def test_a_query_s_time_begins_as_its_first_window_is_sent(
    source: Path, shell: Shell, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for a slot meanwhile has all of it left."""
    sent: list[float | None] = []

    @asynccontextmanager
    async def noted(_self: Timekeeper, seconds: float | None) -> AsyncIterator[Callable[[], None]]:
        yield lambda: sent.append(seconds)

    monkeypatch.setattr(Timekeeper, "at_most", noted)
    ended = shell.run(source, "--query-timeout", "60", "--concurrency", "1")
    assert ended.code == 0, ended.err
    assert sent == [60] * len(windows(server)), "once a window, and for nothing else"
