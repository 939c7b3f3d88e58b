"""`nephila jobs … --bootstrap`: the jobs of a system of services, as its topics tell them.

A job is what was told of it last: to change one is to tell it anew under its next generation. Schedulers that are down
hear of it when they come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from nephila.kernel.messages import CrawlJob, JobStatus
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.topics import JOB_STATUS, JOBS

if TYPE_CHECKING:
    from nephila.kernel.bus.contract import Delivery, Receipt
    from nephila.kernel.bus.kafka.bus import KafkaBus

COLUMNS = ("name", "state", "generation", "queued", "in_flight", "stored", "denied", "failed", "dropped")
TAKEN_S = 20.0
"""For the broker's answer to one message."""
VERDICTS = {"pause": "paused", "resume": "resumed", "delete": "deleted"}


def list_jobs(bootstrap: str) -> list[dict[str, Any]]:
    """How all jobs stand, by name. Raises `UserError`."""
    return asyncio.run(_list(bootstrap))


def change(bootstrap: str, uid: str, what: str) -> dict[str, Any]:
    """Pause, resume or delete a job. Raises `UserError` and `UsageError`."""
    return asyncio.run(_change(bootstrap, uid, what))


@asynccontextmanager
async def connected(bootstrap: str) -> AsyncIterator[KafkaBus]:
    """A bus to the system, not started yet. Raises `UserError`."""
    from nephila.kernel.bus.kafka.admin import topics as admin
    from nephila.kernel.bus.kafka.bus import KafkaBus
    from nephila.kernel.bus.kafka.config import kafka_config
    from nephila.kernel.runtime.clock import SystemClock

    admin.hush()
    there = await admin.existing(kafka_config({"bootstrap": bootstrap}, "command line"))
    if "requests" not in there:
        raise UserError(f"the broker at {bootstrap} has no topics of a system; see nephila topics apply")
    config = kafka_config({"bootstrap": bootstrap, "partitions": there["requests"]}, "command line")
    bus = KafkaBus(config, SystemClock())
    try:
        yield bus
    finally:
        await bus.close()


async def taken(bus: KafkaBus, receipt: Receipt, wait_s: float = TAKEN_S) -> None:
    """Wait until the broker has what was published. Raises `UserError` after a while: it is a person who waits."""
    try:
        await asyncio.wait_for(receipt, wait_s)
    except TimeoutError:
        raise UserError(
            f"the broker at {bus.config.bootstrap} has not said for {wait_s:g} s that it has taken this, and may still "
            "take it; when it answers again see nephila jobs list --bootstrap, and ask again"
        ) from None


class Jobs:
    """What was told last of each job."""

    def __init__(self, bus: KafkaBus) -> None:
        self.jobs: dict[str, CrawlJob] = {}
        self.statuses: dict[str, JobStatus] = {}
        bus.subscribe(JOBS, "jobs", self._on_job, credits=1000)
        bus.subscribe(JOB_STATUS, "jobs", self._on_status, credits=1000)

    def _on_job(self, delivery: Delivery) -> None:
        self.jobs[delivery.message.uid] = delivery.message
        delivery.ack()

    def _on_status(self, delivery: Delivery) -> None:
        status: JobStatus = delivery.message
        if status.version > self.statuses.get(status.uid, JobStatus()).version:
            self.statuses[status.uid] = status
        delivery.ack()

    def facts(self) -> list[dict[str, Any]]:
        """One row for each job that is there."""
        found = []
        for uid in sorted(uid for uid, job in self.jobs.items() if not job.deleted):
            status = self.statuses.get(uid) or JobStatus(uid)
            row = {name: getattr(status, name, 0) for name in COLUMNS}
            found.append({**row, "name": uid, "state": _state(self.jobs[uid], status)})
        return found


def _state(job: CrawlJob, status: JobStatus) -> str:
    if job.paused:
        return "paused"
    if status.generation < job.generation or status.deleted:
        return "new"  # no scheduler has said anything of what is wanted now
    if status.spent:
        return "limit"
    return "idle" if status.done else "running"


async def _list(bootstrap: str) -> list[dict[str, Any]]:
    async with connected(bootstrap) as bus:
        jobs = Jobs(bus)
        await bus.start()
        return jobs.facts()


async def _change(bootstrap: str, uid: str, what: str) -> dict[str, Any]:
    async with connected(bootstrap) as bus:
        jobs = Jobs(bus)
        await bus.start()
        job = jobs.jobs.get(uid)
        if job is None or job.deleted:
            known = ", ".join(row["name"] for row in jobs.facts()[:5])
            raise UsageError(f"the system has no job {uid!r}; it has {known or 'none'}")
        wanted = msgspec.structs.replace(job, paused=what == "pause", deleted=what == "delete")
        if wanted == job:
            return {"name": uid, "verdict": "unchanged", "generation": job.generation}
        wanted.generation += 1
        await taken(bus, bus.publish(JOBS, 0, wanted))
        return {"name": uid, "verdict": VERDICTS[what], "generation": wanted.generation}
