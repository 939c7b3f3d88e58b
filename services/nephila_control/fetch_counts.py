"""How the fetches of each job ended, by reason and over time, from the table `fetches`.

Invariant: every fetch is counted once. A call reads on from the fetch at which the one before stopped, `READ` fetches
at most, so an answer about a large table is incomplete at first and says so. Memory: `BINS` steps of time and one
number per reason for each job.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from nephila.kernel.messages import Outcome
from nephila.kernel.reasons.table import words
from nephila.storage.ledgers.read_connection import NoTables, open_for_reading
from nephila.storage.ledgers.schema import DATABASE
from nephila.storage.source import Source

from nephila_control.job_types import LastError
from nephila_control.screen_types import OutcomeCount, OutcomeCounts, TimeBin

READ: Final = 100_000
"""Fetches of one call: some 100 ms in a thread."""
FAILED: Final = Outcome.FAILED.name.lower()
REASONS: Final = 3
"""Reasons that the cause of a failed job names."""
BINS: Final = 96
"""Steps of time of a job, at most; when they are too few, each is doubled."""
STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Lengths of a step, in seconds; then multiples of days."""


class _Counts:
    def __init__(self) -> None:
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.step = 0
        self.bins: dict[int, Counter[str]] = {}
        self.failure: tuple[int, str] = (0, "")
        """Instant and reason of the last fetch that failed."""

    def add(self, at: int, outcome: str, reason: str, count: int) -> None:
        self.reasons[outcome, reason] += count
        if outcome == FAILED:
            self.failure = max(self.failure, (at, reason))
        if at:
            self.bins.setdefault(at // self.step_s, Counter())[outcome] += count
            while max(self.bins) - min(self.bins) >= BINS:
                self._widen()

    @property
    def step_s(self) -> int:
        last = len(STEPS) - 1
        return STEPS[self.step] if self.step <= last else STEPS[last] << (self.step - last)

    def _widen(self) -> None:
        before, self.step = self.step_s, self.step + 1
        bins: dict[int, Counter[str]] = {}
        for number, counts in self.bins.items():
            # A step that does not divide the next one moves fetches by less than its own length.
            bins.setdefault(number * before // self.step_s, Counter()).update(counts)
        self.bins = bins


class FetchCounts:
    def __init__(self, source: Source | None) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._last = 0
        self._all = _Counts()
        self._jobs: dict[str, _Counts] = {}

    def read(self, jobs: Collection[str] | None) -> OutcomeCounts:
        """Reads the database. `jobs` limits the counts; None counts all jobs."""
        with self._lock:
            complete = self._read_on()
            total = self._all if jobs is None else _sum([self._jobs[job] for job in jobs if job in self._jobs])
            return OutcomeCounts(
                counts=[
                    OutcomeCount(outcome=outcome, reason=reason, words=words(outcome, reason), fetches=count)
                    for (outcome, reason), count in total.reasons.most_common()
                ],
                step_s=total.step_s,
                timeline=[
                    TimeBin(at=number * total.step_s, outcomes=dict(sorted(counts.items())))
                    for number, counts in sorted(total.bins.items())
                ],
                complete=complete,
            )

    def reasons(self, jobs: Iterable[str]) -> dict[str, str]:
        """Maps each job to the most frequent reasons of its fetches, in words. Reads the database."""
        with self._lock:
            self._read_on()
            return {job: self._reasons(job) for job in jobs}

    def last_errors(self, jobs: Iterable[str]) -> dict[str, LastError]:
        """Maps each job to its last failed fetch; jobs without one are left out. Reads the database."""
        with self._lock:
            self._read_on()
            failures = {job: self._jobs[job].failure for job in jobs if job in self._jobs}
        return {
            job: LastError(reason=reason, words=words(FAILED, reason), at=at)
            for job, (at, reason) in failures.items()
            if at
        }

    def _reasons(self, job: str) -> str:
        counts = self._jobs[job].reasons.most_common(REASONS) if job in self._jobs else []
        return ", ".join(f"{count:,} {outcome}({reason})" for (outcome, reason), count in counts if reason)

    def _read_on(self) -> bool:
        if self._source is None or (isinstance(self._source, Path) and not (self._source / DATABASE).exists()):
            return True
        try:
            with open_for_reading(self._source) as connection:
                (last,) = connection.execute("SELECT max(id) FROM fetches", {}).fetchone()
                end = min(last or 0, self._last + READ)
                query = (
                    "SELECT job, outcome, reason, substr(fetched_at, 1, 19), count(*) FROM fetches"
                    " WHERE id > :after AND id <= :end GROUP BY 1, 2, 3, 4"
                )
                for job, outcome, reason, at, count in connection.execute(query, {"after": self._last, "end": end}):
                    for counts in (self._all, self._jobs.setdefault(job, _Counts())):
                        counts.add(_seconds(at), outcome, reason, count)
                self._last = end
                return end == (last or 0)
        except NoTables:
            return True


def _sum(parts: list[_Counts]) -> _Counts:
    """The longest step of the jobs becomes the step of the sum."""
    if len(parts) == 1:
        return parts[0]
    total = _Counts()
    total.step = max((part.step for part in parts), default=0)
    for part in parts:
        total.reasons.update(part.reasons)
        for number, counts in part.bins.items():
            total.bins.setdefault(number * part.step_s // total.step_s, Counter()).update(counts)
    while total.bins and max(total.bins) - min(total.bins) >= BINS:
        total._widen()
    return total


def _seconds(text: str) -> int:
    try:
        return int(datetime.fromisoformat(f"{text}+00:00").timestamp()) if text else 0
    except ValueError:
        return 0
