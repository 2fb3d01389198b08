"""What the store's last job was: its server, for a run that names none, and how another differs."""

from __future__ import annotations

import orjson

from batchrank.formats.wording import counted, displayable
from batchrank.ranking.job import OF_THE_SERVER, Job
from batchrank.serving.preflight import Profile
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import Templates
from batchrank.store.profiles import recall_all
from batchrank.store.store import Store


async def profile_of_last(store: Store, spec: JobSpec, templates: Templates) -> Profile | None:
    """The server with which `spec`, which names none, is the job of the store's last run.

    So a joined store is used by a run that does not know where its shards were ranked. None where
    the spec names a server or a model, or is another job with each.
    """
    (server, *others) = spec.servers
    if others or server.base_url or server.model or spec.backend != "auto" or spec.engine == "ray":
        return None
    last = await store.select(
        "SELECT key FROM runs JOIN jobs ON jobs.id = runs.job ORDER BY runs.id DESC LIMIT 1", ()
    )
    for profile in map(Profile.from_dict, await recall_all(store)):
        if last and Job(spec, templates, profile).key == last[0][0]:
            return profile
    return None


async def told_of_other(store: Store, source: str, job: Job, *, asked: bool = True) -> str | None:
    """That the store holds rankings of this input by another job than `job`, which is new to it.

    Of any input where `job` is incremental, as it would build on them were they its own.
    Where the server was not `asked`, what it discloses is not known: then it is told of a job that
    is another one whatever the server is, and of one that may be.
    """
    if asked and await store.select("SELECT 1 FROM jobs WHERE key = ?", (job.key,)):
        return None
    rows = await store.select(
        "SELECT settings, (SELECT count(*) FROM rankings WHERE rankings.job = jobs.id), input = ?1 "
        "FROM runs JOIN jobs ON jobs.id = runs.job WHERE input = ?1 OR ?2 "
        "ORDER BY input = ?1 DESC, runs.id DESC LIMIT 1",
        (displayable(source), job.spec.incremental),
    )
    if not rows or not rows[0][1]:
        return None
    ((settings, count, is_this),) = rows
    there, here = orjson.loads(settings), orjson.loads(orjson.dumps(job.settings))
    names = sorted(name for name in there.keys() | here.keys() if there.get(name) != here.get(name))
    if not asked:
        given = {"model"} if job.spec.servers[0].model else frozenset[str]()
        names = [name for name in names if name not in OF_THE_SERVER - given]
    of = "this input" if is_this else "another input"
    held = f"this store holds {counted(count, 'ranking')} of {of} by {there['model']}"
    if not names:
        return (
            f"{held}; it does not know the server that is meant: with another model there this is "
            "another job, which asks for all of it"
        )
    differ = f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''}"
    so = "asks for all of it" if is_this else "builds on none of them"
    return f"{held}; this is another job (it differs in {differ}), which {so}"
