"""Starts a job on the first of its servers that proves what the job relies on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from batchrank.calls import Form
from batchrank.clock import SystemClock
from batchrank.errors import NoServerError, ServerError
from batchrank.serving.connection import Connection, Member
from batchrank.serving.gather import HELD_UP_SECONDS, gather_ready
from batchrank.serving.preflight import Profile, preflight
from batchrank.serving.probe import probe_of
from batchrank.serving.warmup import TOLD_SECONDS, wake, within
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import Templates
from batchrank.spec.times import parse_duration

Say = Callable[[str], None]


async def prove(
    connection: Connection, spec: JobSpec, templates: Templates, say: Say, waits: Say
) -> tuple[Connection, Profile]:
    """`connection` with a server in front that stood the preflight, and what that found.

    Those that don't answer now come last, without their info, and `say` is told: they are proved
    later. `waits` is told what is waited for. Raises NoServerError where none is left, else as
    `preflight`.
    """
    while True:
        connection = await led_by_one_awake(connection, spec, say, waits)
        try:
            return connection, await preflight(connection, spec, templates)
        except NoServerError as error:
            connection = _led_by_another(connection, {connection.members[0]: error}, say)


async def led_by_one_awake(
    connection: Connection, spec: JobSpec, say: Say, waits: Say
) -> Connection:
    """Wake the first server, and the others with it where it is slow; the rest is as in `prove`."""
    clock = SystemClock()
    asked = probe_of({stage.answer for stage in spec.stages}, Form.TEXT)
    loading = max(spec.timeout, parse_duration(spec.wait_for_server))
    faults: dict[Member, NoServerError] = {}

    async def wakes(member: Member) -> bool:
        assert member.info is not None
        try:
            await wake(member.backend, member.info, asked, loading, spec.timeout, waits, clock)
        except ServerError as error:
            faults[member] = NoServerError.at(member.backend.url, error)
            return False
        return True

    async def wakes_too(member: Member) -> bool:
        return not (await within(TOLD_SECONDS, front, clock) and front.result()) and (
            await wakes(member)
        )

    able = [member for member in connection.members if member.can_lead]
    front = asyncio.ensure_future(wakes(able[0]))
    works = [front, *map(wakes_too, able[1:])]
    awake = await gather_ready(works, bool, clock, first_is_enough=True)
    if True in awake:
        for member in able[: awake.index(True)]:
            silent = (
                f"{member.backend.url} gave no answer within {HELD_UP_SECONDS:g} s of another's"
            )
            faults.setdefault(member, NoServerError(silent))
    return _led_by_another(connection, faults, say) if faults else connection


def _led_by_another(
    connection: Connection, faults: dict[Member, NoServerError], say: Say
) -> Connection:
    """The same with those that have faults behind; the first fault where no other can lead."""
    left = [member for member in connection.members if member not in faults]
    first = next((member for member in left if member.can_lead), None)
    if first is None:
        raise next(iter(faults.values()))
    for error in faults.values():
        say(f"warning: the job starts without a server, until a probe proves it: {error}")
    assert first.info is not None
    others = [member for member in left if member is not first]
    late = [replace(member, info=None) for member in faults]
    return replace(
        connection, backend=first.backend, info=first.info, members=(first, *others, *late)
    )
