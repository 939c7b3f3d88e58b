"""A cache of look-ups by host name with an expiry time and a bound on names. Pure: instants are passed in."""

from __future__ import annotations

from typing import Generic, TypeVar

V = TypeVar("V")


class TtlCache(Generic[V]):
    """See `dns.contract.Cache`. At most `size` names; the name inserted first is evicted first. O(1) per operation."""

    def __init__(self, size: int) -> None:
        self._size = max(1, size)
        self._entries: dict[str, tuple[float, V]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, host: str, now: float) -> V | None:
        """See `Cache.get`."""
        entry = self._entries.get(host)
        return None if entry is None or entry[0] <= now else entry[1]

    def put(self, host: str, value: V, now: float, ttl_s: float) -> None:
        """See `Cache.put`."""
        self._entries.pop(host, None)
        while len(self._entries) >= self._size:
            del self._entries[next(iter(self._entries))]
        self._entries[host] = (now + ttl_s, value)
