"""Whether the inputs of a scheduler may be read in larger batches: no host waits for them.

A host waits for the outcome of its fetch before the next one. Where every job leaves its hosts alone for `PATIENT_S` or
longer, an outcome that comes a tenth of a second later delays nothing. O(jobs) per change of a job.
"""

from __future__ import annotations

from nephila.kernel.bus.contract import LogBus
from nephila.kernel.messages import CrawlJob

from nephila_cluster.kafka.job_delays import JobDelays

PATIENT_S = 0.5
"""Least delay between two fetches of a host; five times the pause of a patient reader."""


class InputPatience:
    """The least delays of all jobs that are not deleted."""

    def __init__(self, bus: LogBus, group: str) -> None:
        self._bus = bus
        self._group = group
        self._delays = JobDelays()
        self._patient = False

    def on_job(self, job: CrawlJob) -> None:
        """The latest desired state of a job."""
        patient = self._delays.on_job(job) >= PATIENT_S
        if patient != self._patient:
            self._patient = patient
            self._bus.set_patient(self._group, patient)
