"""Curves of queue and ends in a bounded number of samples: since the program started, and of ranges up to now. Pure.

The curve since the start shows how a run went, in steps that grow with it. A rate that falls now is seen in a range
only, whose steps do not grow. Invariants: at most `SAMPLES` samples at equal steps; when they are full, every
second one is dropped and the step is doubled, so the curve always begins at the start. A range has at most `POINTS`
samples. A sample of a program with more than `JOBS` jobs has the sum over all jobs alone; a sum over 10,000 jobs takes
some 10 ms. All curves share their samples: 100 jobs are some 9 MB.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from nephila.kernel.runtime.clock import Clock

from nephila_control.job_types import Job
from nephila_control.screen_types import Sample, Series, SeriesRange

SAMPLES: Final = 240
FIRST_STEP_S: Final = 2.0
RECENT_S: Final = 660.0
"""Length of the recent curve: a minute, and ten minutes before it."""
STEPS: Final[Mapping[SeriesRange, tuple[float, float]]] = {
    "15m": (900.0, 10.0),
    "1h": (3600.0, 30.0),
    "24h": (86_400.0, 600.0),
    "7d": (604_800.0, 3600.0),
}
"""Range → its length and its step in seconds."""
POINTS: Final = 170
JOBS: Final = 100
ALL: Final = ""
"""Key of the sum over all jobs."""
_FIELDS: Final = ("queued", "in_flight", "stored", "denied", "failed", "dropped")
Counts = tuple[int, ...]
"""Numbers of a job in the order of a `Sample`."""
_Sample = tuple[float, Mapping[str, Counts]]
"""(seconds since 1970 UTC, job → counts)"""


class _Range:
    """Samples of the last `length_s` seconds, and one before them: the counts when that time began."""

    def __init__(self, length_s: float, step_s: float) -> None:
        self.step_s = step_s
        self.samples: deque[_Sample] = deque()
        self._length_s = length_s
        self._next = float("-inf")

    def due(self, now: float) -> bool:
        return now >= self._next

    def note(self, now: float, sample: _Sample) -> None:
        self._next = now + self.step_s
        self.samples.append(sample)
        while len(self.samples) > 1 and self.samples[1][0] <= sample[0] - self._length_s:
            self.samples.popleft()


class JobSeries:
    """`note` takes samples; `read` returns the curves of a job or of all jobs."""

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._ranges = {name: _Range(*sizes) for name, sizes in STEPS.items()}
        self._step_s = FIRST_STEP_S
        self._next = float("-inf")

    def note(self, now: float, utc_now: float, counts: Callable[[], Mapping[str, Counts]]) -> None:
        """Takes a sample if one is due. O(1) otherwise."""
        due = [part for part in self._ranges.values() if part.due(now)]
        if now < self._next and not due:
            return
        by_job = counts()
        total = {ALL: _sum(by_job.values())}
        sample = utc_now, {**total, **by_job} if len(by_job) <= JOBS else total
        if now >= self._next:
            self._note_whole(sample)
            self._next = now + self._step_s
        for part in due:
            part.note(now, sample)

    def _note_whole(self, sample: _Sample) -> None:
        self._samples.append(sample)
        if len(self._samples) > SAMPLES:
            del self._samples[1::2]
            self._step_s *= 2

    def read(
        self, jobs: Collection[str] | None, reports: Sequence[Job], clock: Clock, name: SeriesRange = ""
    ) -> Series:
        """`jobs` limits the curves; None sums all jobs. `reports` are the present counts. `name` is the range of the
        samples; empty is the time since the start."""
        present = _sample(clock.now(), _sum([_counts(report) for report in reports]))
        keys = [ALL] if jobs is None else jobs
        part = self._ranges[name] if name else None
        return Series(
            samples=[*_curve(part.samples if part is not None else self._samples, keys), present],
            step_s=part.step_s if part is not None else self._step_s,
            recent=[*_curve(self._recent(), keys), present],
        )

    def _recent(self) -> Sequence[_Sample]:
        """The last eleven minutes, and one sample before them."""
        samples = list(self._ranges["15m"].samples)
        begin = samples[-1][0] - RECENT_S if samples else 0.0
        first = next((index for index, sample in enumerate(samples) if sample[0] > begin), 0)
        return samples[max(first - 1, 0) :]


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
