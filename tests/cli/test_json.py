"""With `--json` every form of every command writes one JSON value on stdout, and nothing else."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from batchrank.formats.wording import one_line
from tests.cli.conftest import Shell
from tests.cli.running import Result, batchrank, free_port
from tests.cli.walking import leaves

FORMS = (
    "check in.jsonl",
    "doctor in.jsonl {job}",
    "run in.jsonl -o out.jsonl {job}",
    "run in.jsonl -o out.jsonl {job} --dry-run",
    "run in.jsonl -o out.jsonl {job} --fresh",
    "status {store}",
    "status {store} --run 1",
    "status {store} --runs",
    "inspect q1 {store}",
    "inspect --line 2 {store}",
    "eval out.jsonl --qrels judged.qrels",
    "eval store.sqlite --qrels judged.qrels --per-query",
    "compare store.sqlite#1 out.jsonl",
    "compare store.sqlite#1 out.jsonl --qrels judged.qrels",
    "compare store.sqlite#1 out.jsonl --noise in.jsonl --sample 1 {url}",
    "diagnose in.jsonl --sample 1 {url} --store trials.sqlite",
    "tune in.jsonl --qrels judged.qrels --sample 1 {url} --budget 5 --store trials.sqlite",
    "label in.jsonl -o weak.qrels --sample 1 {url} --store trials.sqlite",
    "label --corrected weak.check.jsonl -o sure.qrels",
    "publish store.sqlite jsonl:cache --run 1 --dry-run",
    "publish store.sqlite jsonl:cache --run 1",
    "publish store.sqlite jsonl:cache --run 1",
    "publish store.sqlite jsonl:cache --run 2",
    "publish jsonl:cache --rollback --dry-run",
    "publish jsonl:cache --rollback",
    "gc --older-than 30d {store} --dry-run",
    "gc --older-than 30d {store}",
    "run in.jsonl --shard 0/2 {url} --store 0.sqlite",
    "run in.jsonl --shard 1/2 {url} --store 1.sqlite",
    "merge-stores 0.sqlite 1.sqlite -o joined.sqlite",
)


def test_no_command_is_left_out() -> None:
    with_json = {
        words
        for words, command in leaves().items()
        if any("--json" in option.opts for option in command.params)
    }
    assert with_json == {(form.split()[0],) for form in FORMS}


def assert_failed(ended: Result, *codes: int) -> None:
    """It ended with one of `codes`, and standard output says why as standard error does."""
    told = ended.json
    assert ended.code in codes, ended.err
    assert told["exit_code"] == ended.code
    (reason,) = told["reasons"]
    assert one_line(reason) in ended.err


@pytest.mark.parametrize("flags", [(), ("--no-such-flag",)])
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_write_json_where_they_fail(
    form: str, flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where nothing is
    url = "--base-url http://127.0.0.1:1"
    store = "--store store.sqlite"
    words = form.format(url=url, store=store, job=f"{url} {store}").split()
    assert_failed(batchrank(*words, "--json", *flags), 2, 4)


@pytest.mark.parametrize("flags", [(), ("--log-format", "json")])
def test_a_run_without_a_server_writes_json(source: Path, flags: tuple[str, ...]) -> None:
    nowhere = Shell(source.parent, f"http://127.0.0.1:{free_port()}")
    assert_failed(nowhere.run(source, "--json", *flags), 4)


def test_all_forms_write_json(source: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source.parent)
    Path("judged.qrels").write_text("q1 0 q1-d1 1\nq2 0 q2-d2 1\n")
    url = f"--base-url {shell.url}"
    store = "--store store.sqlite"
    for form in FORMS:
        if "--corrected" in form:
            to_check = Path("weak.check.jsonl")
            to_check.write_text(to_check.read_text().replace('"corrected":null', '"corrected":1'))
        words = form.format(url=url, store=store, job=f"{url} {store}").split()
        ended = batchrank(*words, "--json")
        assert ended.code == 0, (form, ended.err)
        orjson.loads(ended.out)
