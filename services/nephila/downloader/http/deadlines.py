"""Time limits of all fetches by one coarse timer. Receiving a byte reads no clock and sets no timer.

At every tick (an eighth of the shortest limit, at most half a second) each fetch is checked. A phase counts from the
first tick that sees it, so a limit may be exceeded by two ticks and is never shortened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from nephila.downloader.http.config import HttpConfig
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import OneTimer

CONNECT, TUNNEL, HEADERS, BODY = 1, 2, 3, 4
"""Phases. TUNNEL: the proxy is connected, and its server is not."""
MEMORY = Reason.MEMORY
"""Reason of a fetch that waited for memory until its time limit, and first word of its detail."""


class TimedFetch:
    """The times of one fetch. `dials` counts attempts to connect; each one has the full connect time."""

    __slots__ = ("dials", "phase", "phase_seen", "progress_seen", "progress_since", "since", "started")

    def __init__(self, started: float) -> None:
        self.phase = CONNECT
        self.dials = 0
        self.started = self.since = self.progress_since = started
        self.phase_seen = 0
        self.progress_seen = -1

    @property
    def received_bytes(self) -> int:
        """Bytes of the body received so far."""
        raise NotImplementedError

    @property
    def waits_for_memory(self) -> bool:
        """Whether this process does not read, since there is no memory for the body."""
        raise NotImplementedError

    @property
    def progress(self) -> int:
        """A number that changes with each read."""
        raise NotImplementedError

    def time_out(self, detail: str) -> None:
        """A limit is exceeded; `detail` begins with the phase: connect, tunnel, headers, body, total or
        memory."""
        raise NotImplementedError


W = TypeVar("W", bound=TimedFetch)


class DeadlineTimer(Generic[W]):
    """Checks all fetches in flight. O(fetches) per tick; no tick while there are none and `on_tick` needs none."""

    def __init__(self, config: HttpConfig, clock: Clock, on_tick: Callable[[float], bool] | None = None) -> None:
        self._config = config
        self._clock = clock
        self._on_tick = on_tick
        self._active: set[W] = set()
        self._timer = OneTimer(clock, self._tick)
        self._closed = False
        shortest = min(
            config.connect_timeout_s,
            config.headers_timeout_s,
            config.idle_timeout_s,
            config.body_timeout_s,
            config.total_timeout_s,
            config.keepalive_s,
        )
        self._tick_s = min(0.5, max(0.01, shortest / 8))

    def add(self, fetch: W) -> None:
        self._active.add(fetch)
        self._arm()

    def discard(self, fetch: W) -> None:
        self._active.discard(fetch)

    def all(self) -> list[W]:
        return list(self._active)

    def close(self) -> None:
        self._closed = True
        self._timer.cancel()

    def _arm(self) -> None:
        if not self._closed:
            self._timer.start(self._tick_s)

    def _tick(self) -> None:
        now = self._clock.monotonic()
        for fetch in self.all():
            if fetch in self._active:  # the end of another fetch may have aborted it
                detail = self._passed(fetch, now)
                if detail:
                    fetch.time_out(detail)
        again = self._on_tick(now) if self._on_tick is not None else False
        if again or self._active:
            self._arm()

    def _passed(self, fetch: W, now: float) -> str:
        """The limit that is exceeded; empty when none is."""
        config = self._config
        if fetch.waits_for_memory:  # the server is not slow
            fetch.since = fetch.progress_since = now
            late = now - fetch.started > config.total_timeout_s
            return f"{MEMORY}: none for the body within {config.total_timeout_s:g} s" if late else ""
        if now - fetch.started > config.total_timeout_s:
            return f"total: not done after {config.total_timeout_s:g} s"
        phase = fetch.phase + 8 * fetch.dials
        if phase != fetch.phase_seen:
            fetch.phase_seen, fetch.since = phase, now
        elapsed = now - fetch.since
        if fetch.phase == CONNECT:
            if elapsed > config.connect_timeout_s:
                return f"connect: no connection within {config.connect_timeout_s:g} s"
        elif fetch.phase == TUNNEL:
            if elapsed > config.connect_timeout_s:
                return f"tunnel: no connection through the proxy within {config.connect_timeout_s:g} s"
        elif fetch.phase == HEADERS:
            if elapsed > config.headers_timeout_s:
                return f"headers: not complete within {config.headers_timeout_s:g} s"
        else:
            progress = fetch.progress
            if progress != fetch.progress_seen:
                fetch.progress_seen, fetch.progress_since = progress, now
            if now - fetch.progress_since > config.idle_timeout_s:
                return f"body: no byte for {config.idle_timeout_s:g} s"
            if elapsed > config.idle_timeout_s and fetch.received_bytes < config.min_rate_bytes * elapsed:
                return f"body: under {config.min_rate_bytes:g} bytes/s for {config.idle_timeout_s:g} s"
            if elapsed > config.body_timeout_s:
                return f"body: not complete within {config.body_timeout_s:g} s"
        return ""
