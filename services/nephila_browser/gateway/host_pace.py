"""The rate of requests on one host, over all pages of this process: a rendered page must not be a flood.

The generic cell rate algorithm: per host one number, the time at which its requests would be evenly spread. O(1).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import sleep

from nephila_browser.gateway.limit import Limit
from nephila_browser.gateway.upstream import UpstreamRefused

BURST_S: Final = 3.0
"""Requests of this time may come at once: a page begins with its scripts and styles."""
MAX_WAIT_S: Final = 20.0
"""A request that would wait longer is refused; a page has less than a minute."""
MAX_HOSTS: Final = 10_000


class BrowserHostPace:
    """At most `rate` requests per second on each host after a burst; 0 = no limit."""

    def __init__(self, rate: float, clock: Clock) -> None:
        self._gap_s = 1 / rate if rate else 0.0
        self._clock = clock
        self._spread_until: OrderedDict[str, float] = OrderedDict()

    def count(self, host: str) -> None:
        """A request that does not wait."""
        self._reserve(host, float("inf"))

    async def turn(self, host: str) -> None:
        """Wait until a request may be sent. Raises `UpstreamRefused` where too many wait."""
        wait_s = self._reserve(host, MAX_WAIT_S)
        if wait_s <= 0:
            return
        await sleep(self._clock, wait_s)

    def _reserve(self, host: str, longest_s: float) -> float:
        """The wait of one more request, which is counted. Raises `UpstreamRefused` if it is longer than `longest_s`."""
        if not self._gap_s:
            return 0.0
        now = self._clock.monotonic()
        until = max(self._spread_until.pop(host, now), now)
        wait_s = until - now - BURST_S
        if wait_s <= longest_s:
            until += self._gap_s
        self._spread_until[host] = until
        if len(self._spread_until) > MAX_HOSTS:
            self._spread_until.popitem(last=False)
        if wait_s > longest_s:
            raise UpstreamRefused(Limit.PACE, f"more than {1 / self._gap_s:g} requests per second on {host[:100]}")
        return wait_s
