"""Throttles resources: a rate in bytes or requests for the URLs below a prefix, "PREFIX RATE".

PREFIX is a host key with an optional path, as files.example.org/large/; `*` is each host by itself. RATE is 500KB/s,
10/s, 30/min or 100/h. The longest prefix that matches counts. A request that comes too early is given back, and its
host waits; no attempt is counted. A robots.txt is never delayed.

A host is fetched by one process at a time, so a rate holds over all members; after a move of the host it starts again.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, NamedTuple

from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.config import MiddlewareConfig
from nephila.downloader.middleware.contract import Middleware, PausedError
from nephila.downloader.outcome import MAX_RETRY_AFTER_S, ROBOTS
from nephila.kernel import messages as m
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.late_pattern import late_pattern

_RATE = late_pattern(r"(\d+(?:\.\d+)?)(?:(B|KB|MB|GB)/s|/(s|min|h))\Z")
_BYTES = {"B": 1, "KB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
_SECONDS = {"s": 1, "min": 60, "h": 3600}
SWEEP = 10_000
"""Buckets after which those that are due are removed: every host has one with `*`."""


class Rate(NamedTuple):
    """One entry of the setting; one of the two rates is 0."""

    prefix: str
    """Host key and path; empty: each host."""
    bytes_per_s: float
    requests_per_s: float


def parse_rate(line: str) -> Rate:
    """An entry of the setting. Raises `UsageError`."""
    words = line.split()
    match = _RATE.match(words[1]) if len(words) == 2 else None
    if match is None or not float(match[1]):
        raise UsageError(
            f"downloader.middleware.throttle {line!r}: expected 'PREFIX RATE' with a rate as 500KB/s, 10/s, "
            "30/min or 100/h"
        )
    prefix = words[0].partition("://")[2] or words[0]
    if prefix != "*":
        try:
            target = TargetUrl(f"http://{prefix}")
        except ValueError as error:
            raise UsageError(f"downloader.middleware.throttle {line!r}: {error}") from None
        prefix = target.host_header + target.path
    amount = float(match[1])
    if match[2]:
        return Rate("" if prefix == "*" else prefix, amount * _BYTES[match[2]], 0.0)
    return Rate("" if prefix == "*" else prefix, 0.0, amount / _SECONDS[match[3]])


class Throttle(Middleware):
    """Gives requests back that exceed a rate. O(entries of the host) per request."""

    def __init__(self, config: MiddlewareConfig, clock: Clock) -> None:
        rates = sorted((parse_rate(line) for line in config.throttle), key=lambda rate: -len(rate.prefix))
        self._clock = clock
        self._of_each_host = [rate for rate in rates if not rate.prefix]
        self._of_host: dict[str, list[Rate]] = {}
        for rate in rates:
            if rate.prefix:
                self._of_host.setdefault(rate.prefix.partition("/")[0], []).append(rate)
        self._free_at: dict[str, float] = {}
        """Host and prefix → monotonic instant from which a request may be sent. Left out: now."""

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        return bool(self._of_host or self._of_each_host)

    def _rates(self, target: TargetUrl) -> tuple[str, list[Rate]]:
        """Key of the bucket, and the rates of the longest prefix of a URL: at most one of bytes and one of requests."""
        host = target.host_header
        url = host + target.path
        rates = [rate for rate in self._of_host.get(host, ()) if url.startswith(rate.prefix)]
        rates = [rate for rate in rates if rate.prefix == rates[0].prefix] or self._of_each_host
        return (f"{host} {rates[0].prefix}" if rates else ""), rates

    def before_request(self, request: m.FetchRequest, target: TargetUrl) -> Coroutine[Any, Any, None] | None:
        if request.kind == ROBOTS:
            return None
        key, rates = self._rates(target)
        wait_s = self._free_at.get(key, 0.0) - self._clock.monotonic()
        return _pause(rates[0], target, min(wait_s, MAX_RETRY_AFTER_S)) if rates and wait_s > 0 else None

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        """The next request waits for the time of this one."""
        key, rates = self._rates(http_request.target)
        for rate in rates:
            if rate.requests_per_s:
                self._use(key, 1 / rate.requests_per_s)

    def on_outcome(self, request: m.FetchRequest, target: TargetUrl, outcome: m.FetchOutcome) -> None:
        """The next request waits for the time of the bytes received."""
        key, rates = self._rates(target)
        for rate in rates:
            if rate.bytes_per_s:
                self._use(key, outcome.wire_bytes / rate.bytes_per_s)

    def _use(self, key: str, seconds: float) -> None:
        now = self._clock.monotonic()
        if len(self._free_at) >= SWEEP and key not in self._free_at:
            self._free_at = {key: free_at for key, free_at in self._free_at.items() if free_at > now}
        self._free_at[key] = max(self._free_at.get(key, 0.0), now) + seconds


async def _pause(rate: Rate, target: TargetUrl, wait_s: float) -> None:
    raise PausedError(Reason.THROTTLE, f"the rate of {rate.prefix or target.host_header} is reached", wait_s)
