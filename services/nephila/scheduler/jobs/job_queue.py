"""The queue of one job: its URLs lie by host in the native host store. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Set

from nephila.native import HostStore


class JobQueue:
    """The lengths of a job's queues, and its hosts that are kept out of the schedule."""

    def __init__(self, store: HostStore, number: int) -> None:
        self._store = store
        self._number = number
        self.delayed = 0
        """URLs that wait outside the queues for an instant."""
        self.waiting_hosts: dict[int, None] = {}
        """Hosts held back because the job could take no more, in order. `Readiness.resume_hosts` schedules them."""
        self.over_budget_hosts: dict[int, None] = {}
        """Hosts on which the job has spent its budget. Their URLs stay queued, and the job can end without them."""
        self.held_back: Mapping[int, str] = {}
        """The same for hosts whose domain is over its budget."""

    @property
    def length(self) -> int:
        """URLs in queues, and delayed ones."""
        return self._store.job_length(self._number) + self.delayed

    @property
    def waiting(self) -> int:
        """Queued URLs without those on hosts whose budget, or that of their domain, is spent. O(such hosts)."""
        return max(self.length - sum(self._store.length(host, self._number) for host in self.spent_hosts), 0)

    @property
    def spent_hosts(self) -> Set[int]:
        """Hosts whose budget, or that of their domain, is spent. O(such hosts)."""
        return self.over_budget_hosts.keys() | self.held_back.keys()

    def is_spent(self, number: int) -> bool:
        """Whether the budget of a host, or that of its domain, is spent."""
        return number in self.over_budget_hosts or number in self.held_back

    def is_idle_on(self, number: int) -> bool:
        """Whether nothing is taken from a host until a budget grows or the job can take more."""
        return self.is_spent(number) or number in self.waiting_hosts
