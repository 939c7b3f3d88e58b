"""Wrong tokens per source address: after `MOST` in `WITHIN_S` the address has to wait. Pure.

A token that was accepted from an address stays accepted there: behind a proxy all clients have one address, and one
with a wrong token must not lock out the others. An IPv6 address counts as its /64, which one machine has whole.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict, deque
from typing import Final

from nephila.kernel.runtime.clock import Clock

MOST: Final = 10
WITHIN_S: Final = 60.0
ADDRESSES: Final = 1000
"""Addresses whose tries are counted, and accepted tokens that are known; the oldest are forgotten."""


class Tries:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of: OrderedDict[str, deque[float]] = OrderedDict()
        self._accepted: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def wait_s(self, address: str) -> float:
        """Seconds until the address may try a token."""
        tries = self._of.get(_source(address))
        if tries is None or len(tries) < MOST:
            return 0.0
        return max(tries[-MOST] + WITHIN_S - self._clock.monotonic(), 0.0)

    def failed(self, address: str) -> None:
        now, source = self._clock.monotonic(), _source(address)
        tries = self._of.pop(source, None) or deque(maxlen=MOST)
        tries.append(now)
        self._of[source] = tries
        if len(self._of) > ADDRESSES:
            self._of.popitem(last=False)

    def accepted(self, address: str, token: bytes) -> None:
        """`token` is a digest."""
        key = (_source(address), token)
        self._accepted.pop(key, None)
        self._accepted[key] = None
        if len(self._accepted) > ADDRESSES:
            self._accepted.popitem(last=False)

    def was_accepted(self, address: str, token: bytes) -> bool:
        """Whether the address has used this token before."""
        return (_source(address), token) in self._accepted


def _source(address: str) -> str:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address) or ip.ipv4_mapped is not None:
        return str(getattr(ip, "ipv4_mapped", None) or ip)
    return str(ipaddress.ip_network((ip, 64), strict=False))
