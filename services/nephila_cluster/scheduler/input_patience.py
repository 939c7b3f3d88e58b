"""Whether the inputs of a scheduler may be read in larger batches: no host waits for them.

A host waits for the outcome of its fetch before the next one. Where every job leaves its hosts alone for `PATIENT_S` or
longer, an outcome that comes a tenth of a second later delays nothing. O(jobs) per change of a job.
"""

from __future__ import annotations

from nephila.kernel.bus.contract import LogBus
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.messages import CrawlJob

PATIENT_S = 0.5
"""Least delay between two fetches of a host; five times the pause of a patient reader."""


class InputPatience:
    """The least delays of all jobs that are not deleted."""

    def __init__(self, bus: LogBus, group: str) -> None:
        self._bus = bus
        self._group = group
        self._delays: dict[str, float] = {}
        self._patient = False

    def on_job(self, job: CrawlJob) -> None:
        """The latest desired state of a job."""
        if job.deleted:
            self._delays.pop(job.uid, None)
        else:
            politeness = spec_of(job).politeness
            own = [host.delay for host in politeness.hosts if host.delay is not None]
            self._delays[job.uid] = min(map(seconds, (politeness.delay, *own)))
        patient = min(self._delays.values(), default=0.0) >= PATIENT_S
        if patient != self._patient:
            self._patient = patient
            self._bus.set_patient(self._group, patient)
