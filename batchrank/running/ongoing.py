"""A run that is registered and has not ended: what its parts share."""

from __future__ import annotations

from dataclasses import dataclass

from batchrank.ranking.job import Job
from batchrank.running.gates import Canaries
from batchrank.running.intake import Intake
from batchrank.running.recorder import Recorder
from batchrank.running.stopping import Stopping
from batchrank.running.timekeeper import Timekeeper
from batchrank.store.records import Run
from batchrank.store.store import Store


@dataclass(frozen=True, slots=True)
class Ongoing:
    """One run of `job`, with what keeps its time, its counts and the reason to stop it."""

    job: Job
    run: Run
    store: Store
    intake: Intake
    time: Timekeeper
    stopping: Stopping
    recorder: Recorder
    canaries: Canaries | None
