"""Kills one job at random moments, restarts it each time, and compares it with a calm run.

    python scripts/crash_test.py --kills 200 --queries 300 --seed 7

Real processes run the public command line against one judge server. The judge's log tells, by the
hash of each request, what was asked in all lives of the job; the store tells what was committed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ("--window-size", "8", "--concurrency", "8", "--merge-passes", "forward,reverse")
CANDIDATES = 30
CALL_SECONDS = 0.02
START_SECONDS = 0.8
"""A life that starts beyond its moment is killed within so long: while it starts, mostly."""
LATE_SECONDS = 0.05
"""Any other up to so long after its moment: during calls, commits and, at the end, writing."""


@dataclass
class Figures:
    """What was seen. `lost` calls were sent and not committed when their process was killed."""

    kills: int = 0
    calm_calls: int = 0
    calls: int = 0
    lost: int = 0
    most_lost: int = 0
    asked_twice: int = 0
    failures: list[str] = field(default_factory=list)

    def check(self, holds: bool, failure: str) -> None:
        """Note the failure unless it `holds`."""
        if not holds:
            self.failures.append(failure)

    def line(self) -> str:
        """The figures in one line."""
        return (
            f"{'FAILED' if self.failures else 'passed'}: {self.kills} kills, {self.calls} calls "
            f"where a calm run makes {self.calm_calls}, {self.lost} of them lost in flight (at "
            f"most {self.most_lost} a kill), {self.asked_twice} committed answers asked twice"
        )


class Job:
    """One job in a folder of its own: its lives, and what the judge and the store say of it."""

    def __init__(self, folder: Path, source: Path) -> None:
        folder.mkdir()
        self.log = folder / "calls.jsonl"
        self.output = folder / "ranked.jsonl"
        self.asked: Counter[str] = Counter()
        """How often each window was asked, by the hash of the request."""
        self.probes = 0
        """Other calls: the checks of the preflight."""
        self._store = folder / "store.sqlite"
        self._source = source
        self._read = 0

    def start(self, url: str) -> subprocess.Popen[bytes]:
        """Begin a new life of the job."""
        command = [sys.executable, "-m", "batchrank", "run", str(self._source), *SETTINGS]
        command += ["--base-url", url, "--store", str(self._store), "-o", str(self.output)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    def read_log(self) -> int:
        """Bring `asked` and `probes` up to date; the number of distinct windows asked so far."""
        with self.log.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                call = orjson.loads(line)
                if call["purpose"] == "window":
                    self.asked[call["body"]] += 1
                elif call["purpose"] == "other":
                    self.probes += 1
        return len(self.asked)

    def settle(self, url: str) -> None:
        """Wait until the judge has noticed that a client is gone, and has logged its calls.

        What a client sent before it died is in the judge's hands before a question that comes
        later is answered twice.
        """
        quiet = 0
        while quiet < 2:
            before = self.log.stat().st_size
            with urllib.request.urlopen(f"{url}/judge/stats") as response:
                busy = orjson.loads(response.read())["in_flight"]
            quiet = 0 if busy or self.log.stat().st_size != before else quiet + 1
        self.read_log()

    def answers(self) -> dict[int, bytes]:
        """The key of each committed answer by its number; ValueError for a corrupt store."""
        if not self._store.exists():
            return {}
        with closing(sqlite3.connect(self._store)) as store:
            (verdict,) = store.execute("PRAGMA integrity_check").fetchone()
            if verdict != "ok":
                raise ValueError(verdict)
            if not store.execute("SELECT 1 FROM sqlite_schema WHERE name = 'answers'").fetchone():
                return {}
            return dict(store.execute("SELECT id, key FROM answers"))


def crash_test(folder: Path, *, kills: int, queries: int, seed: int) -> Figures:
    """Run the test in an empty `folder`; what it found wrong stands in `failures`."""
    draw = random.Random(seed)
    figures = Figures()
    source = folder / "queries.jsonl"
    source.write_bytes(b"".join(_lines(queries)))
    calm = Job(folder / "calm", source)
    with _judge(source, calm.log) as url:
        figures.check(calm.start(url).wait() == 0, "the calm run failed")
        calm.settle(url)
    figures.calm_calls = calm.asked.total()

    job = Job(folder / "crashed", source)
    # Spread over the work, not over time: a slow machine is killed at no other places. The last
    # one comes when all was asked.
    moments = sorted(draw.randrange(figures.calm_calls) for _ in range(kills - 1))
    with _judge(source, job.log) as url:
        for moment in (*moments, figures.calm_calls):
            while not _killed(job, url, moment, draw, figures):
                pass
        figures.check(job.start(url).wait() == 0, "the last life failed")
        job.settle(url)

    figures.calls = job.asked.total()
    repeated = figures.calls - len(job.asked)
    figures.check(job.asked.keys() == calm.asked.keys(), "other requests than in the calm run")
    figures.check(
        repeated == figures.lost, f"{repeated} calls repeated where {figures.lost} were lost"
    )
    figures.check(len(job.answers()) == len(calm.asked), "the store holds more or fewer answers")
    same = job.output.is_file() and job.output.read_bytes() == calm.output.read_bytes()
    figures.check(same, "the output is not that of the calm run")
    left = sorted(path.name for path in job.output.parent.glob(".*partial*"))
    figures.check(not left, f"left behind: {left}")
    return figures


def _killed(job: Job, url: str, moment: int, draw: random.Random, figures: Figures) -> bool:
    """Start the job, kill it once `moment` windows were asked, and see what that cost.

    False where the job came to its end before it was killed.
    """
    committed, asked, probes = job.answers(), job.asked.total(), job.probes
    early = job.read_log() >= moment
    process = job.start(url)
    while job.read_log() < moment and process.poll() is None:
        time.sleep(0.002)
    time.sleep(draw.uniform(0, START_SECONDS if early else LATE_SECONDS))
    process.kill()
    status = process.wait()
    job.settle(url)
    figures.check(status in (0, -signal.SIGKILL), f"a life ended by itself with {status}")
    try:
        now = job.answers()
    except ValueError as error:
        figures.failures.append(f"the store is corrupt: {error}")
        return True
    lost = job.asked.total() - asked - sum(number not in committed for number in now)
    figures.lost += lost
    figures.most_lost = max(figures.most_lost, lost)
    # An answer that is asked again takes the place of the old one, under a new number.
    figures.asked_twice += sum(now.get(number) != key for number, key in committed.items())
    figures.check(figures.asked_twice == 0, "a committed answer was asked again")
    figures.check(not asked or job.probes == probes, "a resumed job repeated its preflight")
    figures.kills += status != 0
    return status != 0


@contextmanager
def _judge(source: Path, log: Path) -> Iterator[str]:
    """A deterministic judge's URL; the judge appends its calls to `log`."""
    command = [sys.executable, str(ROOT / "scripts" / "judge_server.py"), "--kind", "vllm"]
    command += ["--input", str(source), "--noise", "1", "--call-seconds", str(CALL_SECONDS)]
    command += ["--sigma", "0.5", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def _lines(queries: int) -> Iterator[bytes]:
    for query in range(queries):
        candidates = [
            {
                "docid": f"q{query}-d{place}",
                "doc": {
                    "text": f"Page {place} of log {query} tells of wind, tide and sail {place}."
                },
            }
            for place in range(CANDIDATES)
        ]
        yield orjson.dumps(
            {
                "query": {"qid": f"q{query}", "text": f"what happened on voyage {query}"},
                "candidates": candidates,
            },
            option=orjson.OPT_APPEND_NEWLINE,
        )


def main() -> None:
    """Run the test as asked for on the command line; exit 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = crash_test(
            Path(folder), kills=given.kills, queries=given.queries, seed=given.seed
        )
    for failure in figures.failures:
        print(f"crash_test: {failure}", file=sys.stderr)
    print(figures.line())
    sys.exit(bool(figures.failures))


if __name__ == "__main__":
    main()
