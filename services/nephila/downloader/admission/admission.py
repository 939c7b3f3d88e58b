"""The limit on concurrent fetches, set every second from the load of the container (`container.py`, `capacity.py`).

    limit = requests in flight + N, within [1, concurrency]

It begins with a first batch, since the size of pages is unknown. The batch ends when as many pages have been published,
or after `STALL_S` without one; before that, the limit does not rise while as many large bodies are arriving. The limit
falls at once: by memory whenever N demands it, by event loop and pressure only above their thresholds. CPU above its
threshold only stops the rise. The limit rises by a tenth of the weight or more, so that it does not flap, and at most
doubles: in a second, or when as many pages have been published as it allows fetches, since their sizes are known then.
At least one fetch is always admitted, and with enough memory the first batch: a crawl that waits for another program
continues slowly instead of never.

The limit is an estimate, so that few fetches have to wait for memory; the bytes themselves are reserved in the budget
(`kernel/process/memory_budget.py`). A fetch without a reservation counts with `BODY_FACTOR` times the largest recent
body. Bodies of `LARGE_BYTES` and more raise that estimate at once, and the limit is computed again; the estimate falls
by a tenth each second. Ordinary pages cost one comparison.
"""

from __future__ import annotations

from collections.abc import Callable

from nephila.downloader.admission.capacity import (
    Headroom,
    Load,
    Thresholds,
    further_by_memory,
    further_by_time,
    headroom_of,
    weight_of,
)
from nephila.downloader.admission.config import AdmissionConfig
from nephila.kernel.process.container import Container, Usage
from nephila.kernel.process.memory_budget import (
    BODY_FACTOR,
    LARGE_BYTES,
    MemoryBudget,
    container_budget,
    unlimited,
)
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import OneTimer

INTERVAL_S = 1.0
REQUEST_BYTES = LARGE_BYTES * BODY_FACTOR
"""Memory of a request that is fetched without a browser, at least."""
DECAY = 0.9
"""Factor of the estimated size of a page, per second without a larger one."""
GROWTH = 2
"""Greatest factor by which the limit rises in a second, or with a batch of pages."""
STALL_S = 5.0
"""Time without a page after which the first batch ends: servers that send slowly on purpose hold nobody else."""
RISE = 0.1
"""Least part of the weight by which the limit rises above the first batch."""


class Admission:
    """Computes `limit`, and calls `on_limit` when it has changed."""

    def __init__(
        self,
        clock: Clock,
        read: Callable[[], Usage],
        in_flight: Callable[[], int],
        on_limit: Callable[[int], None],
        is_idle: Callable[[], bool],
        *,
        most: int,
        first_batch: int,
        thresholds: Thresholds,
        request_bytes: float = REQUEST_BYTES,
        processes: int = 1,
        budget: MemoryBudget | None = None,
    ) -> None:
        """`request_bytes`: least memory of one request in this lane. `processes`: downloaders in the container.
        `budget`: in which large bodies of this process are reserved; None: there is none."""
        self._clock = clock
        self._read = read
        self._in_flight = in_flight
        self._on_limit = on_limit
        self._is_idle = is_idle
        self._most = most
        self._first_batch = min(first_batch, most)
        self._thresholds = thresholds
        self._least_bytes = request_bytes
        self._request_bytes = request_bytes
        self._processes = processes
        self._budget = budget or unlimited()
        self._timer = OneTimer(clock, self._tick)
        self._due = 0.0
        """When the timer is due."""
        self._usage = read()
        self._read_at = clock.monotonic()
        self._cpu_cores = 0.0
        self._delay_s = 0.0
        self._starting = True
        """Whether the first batch has not ended."""
        self._page_at = clock.monotonic()
        """When the last page of the first batch was published, or the first request came."""
        self._batch_left = self._first_batch
        """Pages to publish until the limit may double."""
        self._ceiling = self._first_batch
        """The limit may not rise above it before the next second, or the end of the batch."""
        self.limit = self._first_batch
        self.memory_requests = 1
        """Requests whose pages the memory can hold, with pages of the estimated size."""
        self.headroom = Headroom(1.0, 1.0, 1.0)
        self.notice_from = 0
        """Size of a body from which `on_page` has to be called."""

    def start(self) -> None:
        """Begin; `on_limit` is called with the first batch."""
        self._compute()
        self._on_limit(self.limit)

    def wake(self) -> None:
        """A request has come. While there is none, nothing is measured and no timer runs."""
        if not self._timer.armed:
            self._usage, self._read_at = self._read(), self._clock.monotonic()
            self._page_at = self._read_at
            self._wait()

    def close(self) -> None:
        self._timer.cancel()

    @property
    def bound_by(self) -> str:
        """The resource that keeps the limit below its maximum; empty: none."""
        return "" if self.limit >= self._most else "first batch" if self._starting else self.headroom.resource

    @property
    def headroom_by_resource(self) -> dict[str, float]:
        """Resource → share that is left below its threshold."""
        return self.headroom.by_resource

    # ---- events

    def on_page(self, size: int) -> None:
        """A page of this size is published."""
        if size >= LARGE_BYTES:
            self._request_bytes = max(self._request_bytes, size * BODY_FACTOR)
        self._batch_left -= 1
        if self._starting:
            self._page_at = self._clock.monotonic()
        if self._batch_left <= 0:
            self._starting = False
            self._ceiling = max(self._ceiling, self.limit * GROWTH)
            self._compute()
            self._batch_left = self.limit
            self.notice_from = LARGE_BYTES if self.limit >= self._most else 0
        elif size >= LARGE_BYTES:
            self._compute()

    def _wait(self) -> None:
        self._due = self._clock.monotonic() + INTERVAL_S
        self._timer.start(INTERVAL_S)

    def _tick(self) -> None:
        now = self._clock.monotonic()
        usage = self._read()
        cores = max(usage.cpu_s - self._usage.cpu_s, 0.0) / max(now - self._read_at, 1e-3)
        # The mean of two intervals: one collection or one large page is no load.
        self._cpu_cores = (self._cpu_cores + cores) / 2
        self._delay_s = max(now - self._due, self._delay_s / 2)
        self._usage, self._read_at = usage, now
        self._request_bytes = max(self._request_bytes * DECAY, self._least_bytes)
        self._ceiling = self.limit * GROWTH
        self._starting = self._starting and now - self._page_at < STALL_S
        self._compute()
        if not self._is_idle():
            self._wait()

    def _compute(self) -> None:
        in_flight = self._in_flight()
        usage = self._usage
        load = Load(
            usage.memory_bytes, usage.memory_limit_bytes, self._cpu_cores, usage.cores, self._delay_s,
            usage.memory_pressure,
        )  # fmt: skip
        budget = self._budget
        unknown = max(in_flight - budget.streaming, 0)
        reserved = unknown * self._request_bytes + budget.outstanding_bytes
        headroom = self.headroom = headroom_of(load, self._thresholds, reserved)
        weight = weight_of(usage.memory_limit_bytes, self._request_bytes)
        by_memory = in_flight + further_by_memory(weight, headroom, self._processes)
        self.memory_requests = max(by_memory, 1)
        further = further_by_time(weight, self._most, headroom, self._processes)
        by_time = in_flight + further
        if min(headroom.loop, headroom.pressure) > 0:
            # Few requests in flight are no reason to fall. CPU above its threshold is none either: a process that uses
            # all of its CPU is late only if its event loop is late.
            by_time = max(by_time, self.limit)
        limit = min(max(by_memory, 1), max(by_time, self._first_batch), self._most)
        if self._first_batch < self.limit < limit < self._most and limit - self.limit < min(weight, self._most) * RISE:
            return
        limit = min(limit, max(self._ceiling, self.limit))
        if self._starting and budget.streaming >= self._first_batch:
            limit = min(limit, self.limit)
        if limit != self.limit:
            self.limit = limit
            self._on_limit(limit)


MakeAdmission = Callable[[Callable[[], int], Callable[[int], None], Callable[[], bool]], Admission]
"""Makes the admission of a downloader from its fetches in flight, its setter of the limit, and whether it is idle."""


def make_admission(
    config: AdmissionConfig, clock: Clock, budget: MemoryBudget, most: int, request_bytes: float = REQUEST_BYTES
) -> MakeAdmission | None:
    """The admission as configured, of `most` requests in flight; None when it is off."""
    if not config.enabled:
        return None
    container = Container()
    return lambda in_flight, on_limit, is_idle: Admission(
        clock,
        container.read,
        in_flight,
        on_limit,
        is_idle,
        most=most,
        first_batch=config.first_batch,
        thresholds=Thresholds(config.memory, config.cpu, config.loop_s),
        request_bytes=request_bytes,
        processes=config.processes,
        budget=budget,
    )


def make_budget(config: AdmissionConfig, clock: Clock) -> MemoryBudget:
    """The budget of a process with a downloader: what its container has, or everything if admission is off."""
    if not config.enabled:
        return unlimited()
    return container_budget(clock, share=config.memory, processes=config.processes)
