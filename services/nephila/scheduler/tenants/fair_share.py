"""Fair share between jobs: deficit round-robin; the unit is one fetch. Pure.

A job's quantum is its weight divided by the smallest weight present. In its turn a job may use that many fetches.
Invariants: a job that always has work is behind its share by at most one quantum and one fetch; a job without work
saves nothing; no job waits longer than one round of all quanta.

Source: Shreedhar and Varghese, Efficient Fair Queueing Using Deficit Round Robin, 1996.
"""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Generic, TypeVar

J = TypeVar("J")


class FairShare(Generic[J]):
    """Chooses the next job. `next` is O(1) amortised over jobs with work, plus one step per job without work; `add` and
    `remove` are O(jobs)."""

    def __init__(self) -> None:
        self._weights: dict[J, float] = {}
        self._deficits: dict[J, float] = {}
        self._ring: list[J] = []
        self._at = 0
        self._least = 1.0

    def __len__(self) -> int:
        return len(self._ring)

    def __contains__(self, job: J) -> bool:
        return job in self._weights

    def add(self, job: J, weight: float = 1.0) -> None:
        """Add a job or change its weight; 0 means 1. ValueError when the weight is not a positive number."""
        weight = weight or 1.0
        if not (weight > 0 and math.isfinite(weight)):
            raise ValueError(f"weight of a job must be a positive number, got {weight}")
        if job not in self._weights:
            # Behind the current job, so that the new one waits for a whole round like all others.
            self._ring.insert(self._at, job)
            self._at = (self._at + 1) % len(self._ring)
        self._weights[job] = weight
        self._deficits[job] = 0.0
        self._least = min(self._weights.values())

    def add_changed(self, job: J, weight: float) -> None:
        """As `add`, without effect when the job is there with this weight. O(1) then."""
        if self._weights.get(job) != (weight or 1.0):
            self.add(job, weight)

    def jobs(self) -> list[J]:
        return list(self._weights)

    def remove(self, job: J) -> None:
        """Remove a job; no effect when it is not there."""
        if job not in self._weights:
            return
        at = self._ring.index(job)
        del self._ring[at], self._weights[job], self._deficits[job]
        if at <= self._at:
            # One step back, so that the turn of the next job starts with its quantum.
            self._at = (self._at - 1) % max(1, len(self._ring))
        self._least = min(self._weights.values(), default=1.0)

    def next(self, candidates: Container[J]) -> J | None:
        """Choose the job among `candidates` (those with work) for the next fetch and charge it one; None
        without any."""
        ring, deficits = self._ring, self._deficits
        # At most two visits per job: the first may find a deficit below one, the second adds a whole quantum.
        for _ in range(2 * len(ring)):
            job = ring[self._at]
            if job not in candidates:
                deficits[job] = 0.0
            elif deficits[job] >= 1:
                deficits[job] -= 1
                return job
            self._at = (self._at + 1) % len(ring)
            following = ring[self._at]
            if following in candidates:
                deficits[following] += self._weights[following] / self._least
        return None

    def refund(self, job: J) -> None:
        """Undo the last charge of a job that used no fetch; no effect for an unknown job. O(1)."""
        if job in self._deficits:
            self._deficits[job] += 1

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        assert sorted(map(repr, self._ring)) == sorted(map(repr, self._weights)), "ring and weights differ"
        assert self._deficits.keys() == self._weights.keys(), "deficits and weights differ"
        assert 0 <= self._at < max(1, len(self._ring)), f"turn {self._at} of {len(self._ring)}"
        assert self._least == min(self._weights.values(), default=1.0), "least weight is out of date"
        for job, deficit in self._deficits.items():
            assert deficit >= 0, f"{job}: deficit {deficit}"
