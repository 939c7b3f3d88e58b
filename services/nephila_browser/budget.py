"""Browser-seconds of jobs and of their hosts, in this process. Pure."""

from __future__ import annotations

from collections import Counter

from nephila.kernel.documents.browser_schema import Budget
from nephila.kernel.documents.field_types import seconds

MAX_HOSTS = 100_000
"""Hosts that are counted; the counts of all hosts are dropped above."""


class BrowserBudget:
    """Counts what pages take. A page that begins before its budget is spent is completed."""

    def __init__(self) -> None:
        self._jobs: Counter[str] = Counter()
        self._hosts: Counter[tuple[str, str]] = Counter()

    def spend(self, job: str, host: str, seconds_taken: float) -> None:
        """A page of a job took so long."""
        self._jobs[job] += seconds_taken  # type: ignore[assignment]
        if len(self._hosts) >= MAX_HOSTS:
            self._hosts.clear()
        self._hosts[job, host] += seconds_taken  # type: ignore[assignment]

    def spent(self, job: str, host: str, budget: Budget) -> str:
        """Which limit is reached, in words; empty: none."""
        for name, limit, taken in (
            ("host", budget.host, self._hosts[job, host]),
            ("job", budget.job, self._jobs[job]),
        ):
            limit_s = seconds(limit)
            if limit_s and taken >= limit_s:
                return f"{taken:.1f} s of {limit} for the {name}"
        return ""

    def forget(self, job: str) -> None:
        """A job is deleted."""
        self._jobs.pop(job, None)
        for key in [key for key in self._hosts if key[0] == job]:
            del self._hosts[key]
