"""Curves of queue and ends since the program started, in a bounded number of samples. Pure.

Invariants: at most `SAMPLES` samples at equal steps; when they are full, every second one is dropped and the step is
doubled, so the curve always begins at the start. A program with more than `JOBS` jobs keeps no samples: each costs
a report of every job.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from nephila.kernel.runtime.clock import Clock

from nephila_control.job_types import Job
from nephila_control.screen_types import Sample, Series

SAMPLES: Final = 240
FIRST_STEP_S: Final = 2.0
JOBS: Final = 100
_COUNTS: Final = ("queued", "in_flight", "stored", "denied", "failed", "dropped")
_Counts = tuple[int, ...]


class JobSeries:
    """`note` takes samples; `read` returns the curve of a job or of all jobs."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, dict[str, _Counts]]] = []
        """Each sample is (seconds since 1970 UTC, job → counts)."""
        self._step_s = FIRST_STEP_S
        self._next = float("-inf")

    def note(self, now: float, utc_now: float, jobs: Callable[[], Sequence[Job]]) -> None:
        """Takes a sample if one is due. O(1) otherwise."""
        if now < self._next:
            return
        reports = jobs()
        if len(reports) > JOBS:
            self._samples.clear()
            self._next = now + SAMPLES * FIRST_STEP_S
            return
        self._samples.append((utc_now, {job.name: _counts(job) for job in reports}))
        if len(self._samples) > SAMPLES:
            del self._samples[1::2]
            self._step_s *= 2
        self._next = now + self._step_s

    def read(self, jobs: Collection[str] | None, reports: Sequence[Job], clock: Clock) -> Series:
        """`jobs` limits the curve; None sums all jobs. `reports` are the present counts."""
        samples = []
        for at, counts in self._samples:
            chosen = list(counts.values()) if jobs is None else [counts[job] for job in jobs if job in counts]
            if chosen or jobs is None:
                samples.append(_sample(at, _sum(chosen)))
        samples.append(_sample(clock.now(), _sum([_counts(report) for report in reports])))
        return Series(samples=samples, step_s=self._step_s)


def _counts(job: Job) -> _Counts:
    return tuple(int(getattr(job, name)) for name in _COUNTS)


def _sum(rows: Sequence[_Counts]) -> _Counts:
    return tuple(map(sum, zip(*rows, strict=True))) if rows else (0,) * len(_COUNTS)


def _sample(at: float, counts: _Counts) -> Sample:
    return Sample(at=round(at, 3), **dict(zip(_COUNTS, counts, strict=True)))
