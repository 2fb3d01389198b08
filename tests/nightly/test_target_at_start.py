"""What stands in the way of publishing is said before the night; what may pass costs no night."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from scripts.judge import JudgeServer
from tests.cli.running import (
    Result,
    batchrank,
    free_port,
    judge,
    requests,
    serving,
    windows,
    written,
)
from tests.endpoints.acting import Clock
from tests.publishing.reading import docids_at
from tests.publishing.servers import RedisServer, running_redis

ROWS = requests(queries=3, candidates=8)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with serving(judge(ROWS)) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis with a password, which PASSWORD holds."""
    with running_redis(tmp_path_factory.mktemp("redis"), requirepass="s3cret") as server:
        yield server


@pytest.fixture
def job(tmp_path: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec without a target: `publishing` adds one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASSWORD", "s3cret")
    monkeypatch.setattr("batchrank.publishing.redis._RETRIES", 0)
    written(tmp_path / "log.jsonl", ROWS)
    path = tmp_path / "night.toml"
    path.write_text(f'input = "log.jsonl"\nstore = "s.sqlite"\nbase_url = "{server.url}"\n')
    return path


def publishing(job: Path, target: str, *more: str) -> None:
    lines = ("[publish]", f'target = "{target}"', *more)
    job.write_text("\n".join((job.read_text(), *lines, "")))


def run(job: Path) -> Result:
    return batchrank("run", "--job", job)


PASSWORD = 'password_env = "PASSWORD"'
Obstacle = Callable[[Path, RedisServer], str]


def wrong_password(job: Path, redis: RedisServer) -> str:
    publishing(job, redis.url.replace("//", "//:wrong@"))
    return "wants another user or password"


def no_password(job: Path, redis: RedisServer) -> str:
    publishing(job, redis.url)
    return "wants another user or password"


def no_such_database(job: Path, redis: RedisServer) -> str:
    publishing(job, f"{redis.url}77", PASSWORD)
    return "has no database of that number"


def a_replica(job: Path, redis: RedisServer) -> str:
    redis.client.replicaof("127.0.0.1", "1")
    publishing(job, redis.url, PASSWORD)
    return "is a read-only replica"


def a_user_who_may_not(job: Path, redis: RedisServer) -> str:
    redis.client.acl_setuser("reader", enabled=True, passwords=["+s3cret"], commands=["+ping"])
    publishing(job, redis.url.replace("//", "//reader@"), PASSWORD)
    return "its user lacks a permission"


def keys_made_in_another_way(job: Path, redis: RedisServer) -> str:
    publishing(job, "sqlite:cache.sqlite")
    assert run(job).code == 0
    job.write_text(f"{job.read_text()}key_candidates = true\n")
    return "the keys there are made another way"


def another_programs_file(job: Path, redis: RedisServer) -> str:
    job.with_name("cache.sqlite").write_bytes(b"no database, and not ours")
    publishing(job, "sqlite:cache.sqlite")
    return "is no SQLite file"


def another_programs_key(job: Path, redis: RedisServer) -> str:
    redis.client.set("theirs:current", "a text")
    publishing(job, redis.url, PASSWORD, 'namespace = "theirs"')
    return "the key theirs:current there is another program's"


def a_file_that_was_cut(job: Path, redis: RedisServer) -> str:
    publishing(job, "jsonl:cache.jsonl")
    assert run(job).code == 0
    cache = job.with_name("cache.jsonl")
    cache.write_bytes(cache.read_bytes()[:-9])
    return "its last line was cut"


@pytest.mark.parametrize(
    "make",
    [
        *(wrong_password, no_password, no_such_database, a_replica, a_user_who_may_not),
        *(keys_made_in_another_way, another_programs_file, another_programs_key),
        a_file_that_was_cut,
    ],
)
@pytest.mark.parametrize("command", ["run", "doctor"])
def test_what_time_will_not_mend_is_refused(
    job: Path, server: JudgeServer, guarded: RedisServer, make: Obstacle, command: str
) -> None:
    try:
        complaint = make(job, guarded)
        asked = len(server.calls)
        refused = batchrank(command, "--job", job)
    finally:
        guarded.client.replicaof("no", "one")
    assert (refused.code, refused.out) == (2, b"")
    assert complaint in refused.err
    assert "s3cret" not in refused.err
    assert len(server.calls) == asked


def test_doctor_says_whether_the_target_is_there(job: Path, guarded: RedisServer) -> None:
    before = job.read_text()
    publishing(job, guarded.url, PASSWORD)
    assert "publish     the target is there" in batchrank("doctor", "--job", job).out.decode()
    job.write_text(before)
    publishing(job, f"redis://127.0.0.1:{free_port()}")
    examined = batchrank("doctor", "--job", job)
    assert examined.code == 0
    assert "warning     publish: redis://127.0.0.1:" in examined.out.decode()
    assert "fit, but see the 1 warning" in examined.out.decode()


class Restarting(Clock):
    """Time in which a Redis comes up at `port` once somebody has waited `seconds` in all."""

    def __init__(self, folder: Path, port: int, seconds: float) -> None:
        super().__init__()
        self.stack = ExitStack()
        self._start = (folder, port, seconds)

    async def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        await super().sleep(seconds)
        folder, port, due = self._start
        if self.time >= due and not hasattr(self, "redis"):
            server = running_redis(folder, port=str(port))
            self.redis = await asyncio.to_thread(self.stack.enter_context, server)


@pytest.fixture
def waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[int, float], Restarting]]:
    """The clock of what comes after a run, in which a Redis comes up."""
    with ExitStack() as stack:

        def put(port: int, seconds: float) -> Restarting:
            clock = Restarting(tmp_path, port, seconds)
            stack.enter_context(clock.stack)
            monkeypatch.setattr("batchrank.nightly.after.SystemClock", lambda: clock)
            return clock

        yield put


def test_a_server_that_restarts_costs_no_night(
    job: Path, waiting: Callable[[int, float], Restarting]
) -> None:
    port = free_port()
    clock = waiting(port, 40.0)
    publishing(job, f"redis://127.0.0.1:{port}/0")
    ended = run(job)
    assert ended.code == 0, ended.err
    assert "warning: publish: redis://127.0.0.1" in ended.err
    assert "it is waited for" in ended.err
    assert len(docids_at(clock.redis.url)) == len(ROWS)


def test_a_server_that_stays_away_is_told_and_not_taken_for_a_short_night(
    job: Path, server: JudgeServer, waiting: Callable[[int, float], Restarting]
) -> None:
    port = free_port()
    clock = waiting(port, 1e9)
    publishing(job, f"redis://127.0.0.1:{port}/0")
    ended = run(job)
    assert ended.code == 1, ended.err
    assert 300 <= clock.time < 400
    assert "publish: failed: redis://127.0.0.1" in ended.err
    asked = len(windows(server))
    waiting(port, 0.0)
    assert run(job).code == 0
    assert len(windows(server)) == asked
