"""Operations are split by subject, so that a program loads only those that are asked for. The parts share this base: a
backend, and the other operations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from nephila.kernel.messages import CrawlJob
from nephila.kernel.runtime.errors import UsageError

from nephila_control import job_view
from nephila_control.api import Control
from nephila_control.backend import Backend
from nephila_control.declaration import Operation
from nephila_control.fetch_counts import FetchCounts
from nephila_control.job_faults import JobFaults
from nephila_control.search_reader import SearchReader


@dataclass(frozen=True)
class Shared:
    """Views for tenants share this state of the program: it is too costly to compute for each caller."""

    started: float
    """Monotonic instant of the start of the program."""
    fetch_counts: FetchCounts
    search_reader: SearchReader | None
    job_faults: JobFaults


class OperationPart(Control):
    """The operations of one subject. A part passes the operations that it does not write on to the whole."""

    def __init__(self, backend: Backend, shared: Shared, whole: Control) -> None:
        self._backend = backend
        self._shared = shared
        self._whole = whole

    async def call(self, operation: Operation, request: Any) -> Any:
        return await operation.of(self._whole, request)

    def _job(self, name: str) -> CrawlJob:
        """Raises `UsageError` without a name, `NotFound` for an unknown one."""
        if not name:
            raise UsageError("a job has to be named")
        job = self._backend.spec(name)
        if job is None or job.deleted:
            raise job_view.no_job(self._backend.jobs(), name)
        return job

    def _rows_of(self, job: str) -> Collection[str] | None:
        """Returns the jobs whose rows answer a request for one job, or for all jobs; None is no limit."""
        own = self._backend.own_jobs
        if job:
            return [job] if own is None or job in own else []
        return own
