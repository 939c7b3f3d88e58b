"""The operations of the control API over a `Backend`: each is answered by the part that its declaration names.

A part is loaded by the first request for it: a crawl without viewers does without the libraries of rules and sites.
Nothing durable is kept here, so any number of programs may serve one system.
"""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from typing import Any

from nephila_control import job_types
from nephila_control.access.change_log import ChangeLog
from nephila_control.api import Control
from nephila_control.backend import Backend
from nephila_control.declaration import Operation
from nephila_control.fetch_counts import FetchCounts
from nephila_control.job_faults import JobFaults
from nephila_control.job_report import job_list
from nephila_control.part import OperationPart, Shared
from nephila_control.search_reader import SearchReader


class Operations(Control):
    def __init__(self, backend: Backend, shared: Shared | None = None) -> None:
        """A view for tenants gets `shared` from the program."""
        rows = backend.rows
        self._backend = backend
        self._shared = shared or Shared(
            backend.clock.monotonic(),
            FetchCounts(rows),
            SearchReader(rows) if rows is not None else None,
            JobFaults(backend),
        )
        self._parts: dict[str, OperationPart] = {}

    async def call(self, operation: Operation, request: Any) -> Any:
        part = self._parts.get(operation.part)
        if part is None:
            module, _, name = operation.part.partition(":")
            part = getattr(import_module(module), name)(self._backend, self._shared, self)
            self._parts[operation.part] = part
        return await operation.of(part, request)

    @property
    def log(self) -> ChangeLog:
        return self._backend.log

    def within(self, tenants: frozenset[str]) -> Operations:
        """Returns the same API, limited to jobs, rows and rules of these tenants."""
        # Most programs have no tenants: what limits to them is loaded with the first of their callers.
        from nephila_control.access.tenant_view import TenantBackend

        return Operations(TenantBackend(self._backend, tenants), self._shared)

    def jobs(self) -> list[job_types.Job]:
        """Sorted by name."""
        return job_list(self._backend, self._shared.job_faults)

    def degraded(self) -> dict[str, float]:
        """Returns job → 1, for each job that has a fault."""
        return {job.name: 1.0 for job in self.jobs() if job.degraded}

    def states(self) -> dict[str, int]:
        return dict(Counter(job.state for job in self.jobs()))
