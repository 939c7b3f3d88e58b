"""Curves of queue and ends in a bounded number of samples: since the program started, and of the last minutes. Pure.

The curve since the start shows how a run went, in steps that grow with it. A rate that falls now is seen in the recent
one only, whose steps do not grow. Invariants: at most `SAMPLES` samples at equal steps; when they are full, every
second one is dropped and the step is doubled, so the curve always begins at the start. A sample of a program with more
than `JOBS` jobs has the sum over all jobs alone; a sum over 10,000 jobs takes some 10 ms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from nephila.kernel.runtime.clock import Clock

from nephila_control.job_types import Job
from nephila_control.screen_types import Sample, Series

SAMPLES: Final = 240
FIRST_STEP_S: Final = 2.0
RECENT_S: Final = 660.0
"""Length of the recent curve: a minute, and ten minutes before it."""
RECENT_STEP_S: Final = 10.0
JOBS: Final = 100
ALL: Final = ""
"""Key of the sum over all jobs."""
_FIELDS: Final = ("queued", "in_flight", "stored", "denied", "failed", "dropped")
Counts = tuple[int, ...]
"""Numbers of a job in the order of a `Sample`."""
_Sample = tuple[float, Mapping[str, Counts]]
"""(seconds since 1970 UTC, job → counts)"""


class JobSeries:
    """`note` takes samples; `read` returns the curves of a job or of all jobs."""

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._recent: deque[_Sample] = deque()
        self._step_s = FIRST_STEP_S
        self._next = self._next_recent = float("-inf")

    def note(self, now: float, utc_now: float, counts: Callable[[], Mapping[str, Counts]]) -> None:
        """Takes a sample if one is due. O(1) otherwise."""
        if now < self._next and now < self._next_recent:
            return
        by_job = counts()
        total = {ALL: _sum(by_job.values())}
        sample = utc_now, {**total, **by_job} if len(by_job) <= JOBS else total
        if now >= self._next:
            self._note_whole(sample)
            self._next = now + self._step_s
        if now >= self._next_recent:
            self._note_recent(sample)
            self._next_recent = now + RECENT_STEP_S

    def _note_whole(self, sample: _Sample) -> None:
        self._samples.append(sample)
        if len(self._samples) > SAMPLES:
            del self._samples[1::2]
            self._step_s *= 2

    def _note_recent(self, sample: _Sample) -> None:
        self._recent.append(sample)
        # One older sample stays: the counts when the time began.
        while len(self._recent) > 1 and self._recent[1][0] <= sample[0] - RECENT_S:
            self._recent.popleft()

    def read(self, jobs: Collection[str] | None, reports: Sequence[Job], clock: Clock) -> Series:
        """`jobs` limits the curves; None sums all jobs. `reports` are the present counts."""
        present = _sample(clock.now(), _sum([_counts(report) for report in reports]))
        keys = [ALL] if jobs is None else jobs
        return Series(
            samples=[*_curve(self._samples, keys), present],
            step_s=self._step_s,
            recent=[*_curve(self._recent, keys), present],
        )


def _curve(samples: Iterable[_Sample], keys: Collection[str]) -> list[Sample]:
    """Leaves out samples without any of the jobs."""
    curve = []
    for at, counts in samples:
        if chosen := [counts[key] for key in keys if key in counts]:
            curve.append(_sample(at, _sum(chosen)))
    return curve


def _counts(job: Job) -> Counts:
    return tuple(int(getattr(job, name)) for name in _FIELDS)


def _sum(rows: Collection[Counts]) -> Counts:
    return tuple(map(sum, zip(*rows, strict=True))) if rows else (0,) * len(_FIELDS)


def _sample(at: float, counts: Counts) -> Sample:
    return Sample(at=round(at, 3), **dict(zip(_FIELDS, counts, strict=True)))
