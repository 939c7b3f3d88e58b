"""The least delay between two fetches of a host, over all jobs that are not deleted. O(jobs) per change of a job."""

from __future__ import annotations

from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.messages import CrawlJob
from nephila.kernel.topics import JOBS

from nephila_cluster.kafka.beat import Beat


class JobDelays:
    """The jobs by their uid."""

    def __init__(self) -> None:
        self._delays: dict[str, float] = {}

    def on_job(self, job: CrawlJob) -> float:
        """The latest desired state of a job; returns the least delay, 0 without jobs."""
        if job.deleted:
            self._delays.pop(job.uid, None)
        else:
            politeness = spec_of(job).politeness
            own = [host.delay for host in politeness.hosts if host.delay is not None]
            self._delays[job.uid] = min(map(seconds, (politeness.delay, *own)))
        return min(self._delays.values(), default=0.0)


def follow_jobs(bus: Bus, beat: Beat) -> None:
    """Let the beat of a member follow the jobs that it reads."""
    delays = JobDelays()

    def on_job(delivery: Delivery) -> None:
        beat.set_least_delay(delays.on_job(delivery.message))
        delivery.ack()

    bus.subscribe(JOBS, "program", on_job, credits=100)
