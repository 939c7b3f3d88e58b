"""An exclusion that is tried: which queued URLs of a job it would remove. Changes nothing.

The queues are walked in steps of `STEP_S`, between which the scheduler works. So the result is of the time of the walk,
not of an instant: URLs that are fetched meanwhile, and as many others, may be counted or not. Every URL counts once at
most, so `removed` is a lower bound where the walk ends at a limit.
"""

import random
from collections.abc import Sequence
from typing import Final, NamedTuple

import re2

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import unpack
from nephila.scheduler.jobs.scope import compile_patterns

LOOKED_AT: Final = 80_000
"""URLs of one scheduler that are looked at, at most: some 0.2 s of CPU with one expression."""
STEP_S: Final = 0.01
EXAMPLES: Final = 20
MAX_PATTERNS: Final = 20
_PIECE: Final = 50
"""URLs between two looks at the clock."""
_PIECES: Final = 100
"""Of one step, at most."""
_START: Final = (0, 0, 0)


class Partition(NamedTuple):
    """The queues of a job in one partition."""

    frontier: Frontier
    job: Job


class ExclusionTrial:
    """One walk. Call `step` until `done`."""

    def __init__(self, partitions: Sequence[Partition], exclude: Sequence[str], clock: Clock) -> None:
        """Raises `UsageError` for an expression that is not one."""
        self._programs = _joined(compile_patterns(exclude, "exclude"), exclude)
        self._left = list(partitions)
        self._clock = clock
        self._random = random.Random(0)
        self._place: tuple[int, int, int] | None = _START
        self._delayed = 0
        self._host = -1
        self._passed: set[bytes] = set()
        """URLs of the present host that were looked at: one that a checkpoint moves to a file comes again."""
        self._walked = 0
        """URLs that the walk passed, some of them twice: checkpoints in quick succession would not let it end."""
        self.looked_at = 0
        self.removed = 0
        self.examples: list[str] = []
        """A random choice of those that are removed."""

    @property
    def done(self) -> bool:
        """Whether nothing is left to look at, or the limit is reached."""
        return self.complete or self._walked >= LOOKED_AT

    @property
    def complete(self) -> bool:
        """The trial has walked all queues."""
        return not self._left

    def step(self) -> None:
        """Look at some URLs: O(STEP_S), and the cost of `_PIECE` URLs."""
        until = self._clock.monotonic() + STEP_S
        for _ in range(_PIECES):
            if self.done or self._clock.monotonic() >= until:
                return
            self._piece(self._left[0])

    def _piece(self, of: Partition) -> None:
        if self._place is not None:
            self._place, items = of.frontier.store.walk(of.job.number, self._place, _PIECE)
        else:
            items = of.frontier.delayed.part(of.job.number, self._delayed, _PIECE)
            self._delayed += _PIECE
            if self._delayed >= len(of.frontier.delayed):
                self._left.pop(0)
                self._place, self._delayed, self._host = _START, 0, -1
        self._walked += len(items)
        for host, packed in items:
            if host != self._host:
                self._host = host
                self._passed.clear()
            if packed[:16] not in self._passed:
                self._passed.add(packed[:16])
                self._look(of, host, packed)

    def _look(self, of: Partition, host: int, packed: bytes) -> None:
        self.looked_at += 1
        entry = unpack(packed)
        data = entry.url.encode("utf-8", "surrogatepass")
        # A URL that the present scope drops already is not removed by the new expressions.
        if not _matches(self._programs, data) or of.job.left_scope(entry, of.frontier.store.name(host)):
            return
        self.removed += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(entry.url)
        elif (index := self._random.randrange(self.removed)) < EXAMPLES:
            self.examples[index] = entry.url


def _joined(programs: list[re2._Regexp], patterns: Sequence[str]) -> list[re2._Regexp]:
    """The expressions as one program: 20 cost four times as much one by one. Several that are too large together
    stay as they are."""
    try:
        return compile_patterns(["|".join(f"(?:{pattern})" for pattern in patterns)], "exclude")
    except UsageError:
        return programs


def _matches(programs: Sequence[re2._Regexp], data: bytes) -> bool:
    return any(program.search(data) for program in programs)
