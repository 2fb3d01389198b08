"""The units are valid for systemd itself, and treat exit codes as README describes them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from batchrank.errors import (
    NoServerError,
    RejectedError,
    StoppedError,
    UsageError,
)
from batchrank.nightly.systemd import systemd_units
from batchrank.spec.loading import load_spec
from tests.cli.running import Result, batchrank
from tests.conftest import ROOT, missing

NEVER_AGAIN = {str(kind.exit_code) for kind in (UsageError, RejectedError)}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job spec in the folder where the command is given."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "the night 100%.toml"
    path.write_text('input = "log-{date}.jsonl"\nstore = "s.sqlite"\n')
    return path


def made(job: Path, *arguments: str) -> Result:
    """Write the units to the folder of the job."""
    return batchrank("systemd-unit", job, "-o", job.parent, *arguments)


def values(unit: str, directive: str) -> list[str]:
    """What a directive is set to."""
    return re.findall(rf"^{directive}=(.*)$", unit, re.MULTILINE)


def verified(folder: Path, units: Sequence[Path]) -> subprocess.CompletedProcess[str]:
    """What systemd says of units in a folder."""
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze", "apt-get install systemd")
    return subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, units)],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_systemd_accepts_them(job: Path) -> None:
    ended = made(job, "--at", "23:30")
    assert ended.code == 0
    units = sorted(job.parent.glob("*.service")) + sorted(job.parent.glob("*.timer"))
    assert [unit.name for unit in units] == [
        r"batchrank-the\x20night\x20100\x25-boot.service",
        r"batchrank-the\x20night\x20100\x25.service",
        r"batchrank-the\x20night\x20100\x25.timer",
    ]
    assert r"enable --now 'batchrank-the\x20night\x20100\x25.timer'" in ended.out.decode()
    assert r"enable 'batchrank-the\x20night\x20100\x25-boot.service'" in ended.out.decode()
    said = verified(job.parent, units)
    assert not [line for line in said.stderr.splitlines() if "batchrank-" in line]
    assert said.returncode == 0, said.stderr


ODD = [" ", "%h", "%%", "$HOME", "$$", ";", "#", "é猫", "@", "~+,", "&|*?", "[x]", "=", "`", "-"]
ODDER = [*ODD, "'", '"', "\\", "\\x20"]


def test_odd_names_mean_themselves(tmp_path: Path) -> None:
    """Each of many units starts a program that is there only if its name was understood."""
    units = []
    for number, (in_program, odd) in enumerate(zip([*ODD, *["plain"] * 4], ODDER, strict=True)):
        program = tmp_path / f"a{in_program}b" / "batchrank"
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        spec = load_spec(None, {"input": "a.jsonl"})
        job = tmp_path / f"{number}x{odd}"
        made = systemd_units(spec, job, tmp_path / f"w{odd}", [str(program)], "22:00")
        for name, text in made.files.items():
            units.append(tmp_path / name)
            units[-1].write_text(text)
        folder, again = values(made.service + made.boot, "WorkingDirectory")
        assert folder == again
        assert folder.replace("%%", "%").rstrip("/") == str(tmp_path / f"w{odd}")
    said = verified(tmp_path, units)
    assert not [line for line in said.stderr.splitlines() if "batchrank-" in line]
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("odd", ["a b", "é猫", "100%", "a/b", "x'y", "+~,;$"])
def test_names_are_escaped_as_systemd_does(odd: str) -> None:
    if shutil.which("systemd-escape") is None:
        missing("systemd-escape", "apt-get install systemd")
    job = Path("/srv") / f"{odd}.toml"
    made = systemd_units(load_spec(None, {}), job, Path("/srv"), ["/bin/true"], "22:00")
    mangled = ["systemd-escape", "--mangle", "--", f"batchrank-{job.stem}.service"]
    escaped = subprocess.run(mangled, capture_output=True, text=True, check=True)
    assert f"{made.name}.service" == escaped.stdout.strip()


@pytest.mark.parametrize(
    ("name", "program", "complaint"),
    [
        ("é" * 80, "/bin/true", "too long for a systemd unit"),
        *(("n", f"/srv/it{odd}s/batchrank", "starts no program with") for odd in "'\"\\"),
    ],
)
def test_what_systemd_can_not_start_is_refused(name: str, program: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        systemd_units(load_spec(None, {}), Path(f"/{name}"), Path("/srv"), [program], "22:00")


def test_the_same_command_is_run_in_the_same_folder(job: Path) -> None:
    made(job, "--at", "23:30")
    boot, service = (path.read_text() for path in sorted(job.parent.glob("*.service")))
    timer = next(job.parent.glob("*.timer")).read_text()
    assert values(service, "WorkingDirectory") == [str(job.parent)]
    (command,) = values(service, "ExecStart")
    assert command.endswith(f' run --job "{str(job).replace("%", "%%")}"')
    (condition,) = values(boot, "ExecCondition")
    unfinished = f' unfinished "{str(job).replace("%", "%%")}"'
    assert condition == command.partition(" run --job ")[0] + unfinished
    assert values(timer, "OnCalendar") == ["*-*-* 23:30:00"]


@pytest.mark.parametrize(
    ("setting", "accepted"),
    [("", []), ('deadline = "06:00"', ["75"]), ('time_limit = "7h"', ["75"])],
)
def test_exit_codes_are_understood(job: Path, setting: str, accepted: list[str]) -> None:
    job.write_text(f"{job.read_text()}{setting}\n")
    made(job)
    _, service = (path.read_text() for path in sorted(job.parent.glob("*.service")))
    assert StoppedError.exit_code == 75
    assert values(service, "SuccessExitStatus") == accepted
    assert values(service, "Restart") == ["on-failure"]
    (never,) = values(service, "RestartPreventExitStatus")
    assert set(never.split()) == NEVER_AGAIN
    assert str(NoServerError.exit_code) not in accepted
    # A server that is away for an hour costs no night; starts for ever would begin the next.
    (tries,), (seconds,) = values(service, "StartLimitBurst"), values(service, "RestartSec")
    assert 1 <= int(tries) * int(seconds) / 3600 <= 8


def test_the_units_in_jobs_are_what_is_printed() -> None:
    place = Path("/srv/batchrank")
    spec = load_spec(ROOT / "jobs" / "nightly.toml", {})
    program = [str(place / ".venv/bin/batchrank")]
    units = systemd_units(spec, place / "nightly.toml", place, program, "22:00")
    for name, text in units.files.items():
        assert (ROOT / "jobs" / name).read_text() == text


def test_a_boot_starts_the_service_only_where_a_night_broke_off(job: Path) -> None:
    made(job)
    boot, service = sorted(job.parent.glob("*.service"))
    assert values(boot.read_text(), "OnSuccess") == [service.name]
    assert values(boot.read_text(), "WantedBy") == ["multi-user.target"]
    assert values(service.read_text(), "WantedBy") == []


def test_files_that_are_there_stay(job: Path) -> None:
    assert made(job).code == 0
    before = {path: path.read_bytes() for path in job.parent.iterdir()}
    again = made(job, "--at", "01:00")
    assert again.code == 2
    assert "is there already" in again.err
    assert {path: path.read_bytes() for path in job.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("text", "at", "complaint"),
    [
        ('store = "s.sqlite"', "22:00", "no input"),
        ('input = "a.jsonl"', "22", "--at '22' is no time of day"),
        ('input = "a.jsonl"', "25:00", "--at '25:00' is no time of day"),
        ("window = 3", "22:00", "unknown key"),
    ],
)
def test_what_could_not_run_makes_no_units(job: Path, text: str, at: str, complaint: str) -> None:
    job.write_text(text)
    refused = batchrank("systemd-unit", job, "--at", at)
    assert (refused.code, refused.out) == (2, b"")
    assert complaint in refused.err


def test_a_name_can_bring_no_directive_of_its_own(job: Path) -> None:
    bad = job.rename(job.with_name("night\nExecStartPre=rm.toml"))
    refused = batchrank("systemd-unit", bad)
    assert (refused.code, refused.out) == (2, b"")
    assert "no systemd unit can hold" in refused.err
