"""Slots that the partitions of one scheduler share, given to jobs by their shares. Pure.

A partition sees only its own hosts. With few of them, the host that was just fetched waits for its delay, and the
partition would give its slot to any job with another host there. So a free slot belongs to the scheduler: the shares
choose among the jobs that have a ready host in any partition, and the partitions with such a host take turns.
Invariants: fetches in flight and grants are at most the limit, except for fetches that a takeover or a server address
brings. After the turn of a partition it has claims for the jobs of which it has a ready host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from nephila.scheduler.tenants.shares import Sharer, Shares


class SharedSlots:
    """`next` is O(partitions + jobs with a ready host)."""

    def __init__(self, limit: int, shares: Shares, in_flight: Callable[[], float], wake: Callable[[int], None]) -> None:
        """`in_flight`: slots for which the leases of all partitions count. `wake`: has a partition take a turn."""
        self.limit = limit
        self._shares = shares
        self._in_flight = in_flight
        self._wake = wake
        self._claims: dict[str, dict[int, Sharer]] = {}
        """Job → partitions with a ready host of it, in the order of their turns."""
        self._grants: dict[int, list[Sharer]] = {}
        """Partition → jobs for which it has been given a slot, and has not used it."""

    @property
    def free(self) -> float:
        """Slots that no member has; negative after a takeover."""
        return self.limit - self._in_flight() - sum(map(len, self._grants.values()))

    def next(self, partition: int, able: Iterable[Sharer]) -> str:
        """The job that a partition fetches for now, and is charged; the empty string when it has no slot. `able`: jobs
        for which it has a ready host. Slots that are free go to other partitions by the shares."""
        jobs = {job.uid: job for job in able}
        self._set_claims(partition, jobs)
        grants = self._grants.get(partition, [])
        while grants:
            granted = grants.pop(0)
            if granted.uid in jobs:
                return granted.uid
            self._shares.refund(granted)
        return self._give(partition)

    def leave(self, partition: int) -> None:
        """A partition dispatches nothing now: its claims and slots go to others."""
        self._set_claims(partition, {})
        for granted in self._grants.pop(partition, ()):
            self._shares.refund(granted)
        self._give(-1)

    def refund(self, job: Sharer) -> None:
        """A job did not use its slot."""
        self._shares.refund(job)

    def _give(self, partition: int) -> str:
        """Give free slots to claims; returns the job if this partition is next."""
        free = self.free
        while free > 0 and self._claims:
            uid = self._shares.next(next(iter(claims.values())) for claims in self._claims.values())
            claims = self._claims[uid]
            number, job = next(iter(claims.items()))
            # The partition may have more hosts of the job; if not, it gives the slot back in its turn.
            claims[number] = claims.pop(number)
            if number == partition:
                return uid
            self._grants.setdefault(number, []).append(job)
            self._wake(number)
            free -= 1
        return ""

    def _set_claims(self, partition: int, jobs: dict[str, Sharer]) -> None:
        for uid in [uid for uid, claims in self._claims.items() if partition in claims and uid not in jobs]:
            self._drop_claim(uid, partition)
        for uid, job in jobs.items():
            self._claims.setdefault(uid, {})[partition] = job

    def _drop_claim(self, uid: str, partition: int) -> None:
        claims = self._claims[uid]
        del claims[partition]
        if not claims:
            del self._claims[uid]

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        assert all(self._claims.values()), "a job without claims"
        assert self.free <= 0 or not self._claims, "a slot is free, and a ready host waits"
