"""Writes the systemd units that run a job every night, and go on with one after a reboot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from batchrank.errors import UsageError
from batchrank.formats.wording import quoted
from batchrank.spec.jobspec import JobSpec

_AGAIN_SECONDS = 60
_TRIES = 240
"""Four hours of starts that fail at once: longer than any server takes to come back by itself."""
_STOP_SECONDS = 60
"""More than the 25 s for which a clean stop waits for calls in flight."""
_BOOT_ENDING = "-boot.service"
_LONGEST_NAME = 255
_NAME = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_.-")
"""What stands for itself in a unit's name; `@` does too, and would make it an instance."""


@dataclass(frozen=True, slots=True)
class Units:
    """The names of the unit files and what is in them; `boot` goes on with a broken night."""

    name: str
    service: str
    timer: str
    boot: str

    @property
    def boot_name(self) -> str:
        """The file of the unit that is started when the machine is."""
        return f"{self.name}{_BOOT_ENDING}"

    @property
    def files(self) -> dict[str, str]:
        """The units by file name."""
        return {
            f"{self.name}.service": self.service,
            f"{self.name}.timer": self.timer,
            self.boot_name: self.boot,
        }


def systemd_units(spec: JobSpec, job: Path, folder: Path, program: Sequence[str], at: str) -> Units:
    """The units that run `spec`, of the file `job`, in `folder` each day at the time `at` (HH:MM).

    `program` is the command that starts batchrank. What each exit code leads to follows README's
    table; the directives are those of systemd.service(5) and systemd.timer(5). Raises UsageError
    for names that no unit can hold.
    """
    for name in (str(job), str(folder), *program):
        if not name.isprintable():
            raise UsageError(f"{quoted(name)} has a character in it that no systemd unit can hold")
    if set(program[0]) & set("\"'\\"):
        raise UsageError(
            "systemd starts no program with a quote or a backslash in its path: "
            f"{quoted(program[0])}"
        )
    name = _unit_name(f"batchrank-{job.stem}")
    return Units(
        name=name,
        service=_SERVICE.format(
            job=_escaped(str(job)),
            folder=_escaped(_path(folder)),
            command=_command(program, "run", "--job", str(job)),
            short_nights=_SHORT_NIGHTS if _may_be_short(spec) else _NO_SHORT_NIGHTS,
            again=_AGAIN_SECONDS,
            tries=_TRIES,
            stop=_STOP_SECONDS,
        ),
        timer=_TIMER.format(job=_escaped(str(job)), at=at),
        boot=_BOOT.format(
            job=_escaped(str(job)),
            folder=_escaped(_path(folder)),
            command=_command(program, "unfinished", str(job)),
            name=name,
        ),
    )


def _command(program: Sequence[str], *arguments: str) -> str:
    # The program is no place for variables, so that its dollar signs stand for themselves.
    words = (word.replace("$", "$$") for word in (*program[1:], *arguments))
    return " ".join((_quoted(program[0]), *map(_quoted, words)))


def _may_be_short(spec: JobSpec) -> bool:
    return spec.deadline is not None or spec.time_limit is not None


def _unit_name(text: str) -> str:
    """A unit's name without its suffix, as `systemd-escape --mangle` makes it of a text."""
    name = "".join(chr(byte) if byte in _NAME else f"\\x{byte:02x}" for byte in text.encode())
    if len(name) + len(_BOOT_ENDING) > _LONGEST_NAME:
        raise UsageError(
            "the job spec's name is too long for a systemd unit: give it a shorter one"
        )
    return name


def _escaped(text: str) -> str:
    """Per cent signs are specifiers in a unit."""
    return text.replace("%", "%%")


def _path(folder: Path) -> str:
    """A folder where it is all of a line: space at its end is stripped, a backslash goes on."""
    path = str(folder)
    return f"{path}/" if path.endswith((" ", "\\")) else path


def _quoted(word: str) -> str:
    escaped = _escaped(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if escaped != word or not word or set(word) & set(" '$;") else word


_SERVICE = """\
[Unit]
Description=batchrank ({job})
Wants=network-online.target
After=network-online.target
# Name a unit of your own here that tells somebody:
# OnFailure=tell-somebody@%n.service
StartLimitIntervalSec=12h
# So many starts that fail, a minute or more apart; then the night has failed.
StartLimitBurst={tries}

[Service]
Type=oneshot
WorkingDirectory={folder}
ExecStart={command}
# Keys of model servers, as NAME=value lines; the file may be missing.
EnvironmentFile=-/etc/batchrank/environment
{short_nights}
# After a kill, a crash or a full disk the same command goes on where it stopped, and so it does
# once a model server is there (again) that was not (4). A wrong setting (2) or a gate (3) would end
# the same way again.
Restart=on-failure
RestartSec={again}
RestartPreventExitStatus=2 3
# On a stop only batchrank is told: it finishes the calls in flight, also of a model it started.
KillMode=mixed
TimeoutStopSec={stop}
NoNewPrivileges=yes
ProtectSystem=full
"""

_SHORT_NIGHTS = """\
# 75: the time was up. What is left goes first next night, so that is no failure.
SuccessExitStatus=75"""

_NO_SHORT_NIGHTS = """\
# 75, stopped early, is a failure here: started again, the job goes on. With a deadline in the job
# spec, make these units anew: then a short night is no failure."""

_TIMER = """\
[Unit]
Description=batchrank ({job}), every night

[Timer]
OnCalendar=*-*-* {at}:00
# A machine that was off at that time runs the job when it is back.
Persistent=true

[Install]
WantedBy=timers.target
"""

_BOOT = """\
[Unit]
Description=batchrank ({job}), a night that a reboot broke off
# Not where the condition below says that there is none.
OnSuccess={name}.service

[Service]
Type=oneshot
WorkingDirectory={folder}
# Exit code 1, and so no, where no night of the last 18 hours is to go on.
ExecCondition={command}
ExecStart=true

[Install]
WantedBy=multi-user.target
"""
