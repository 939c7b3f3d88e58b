"""Idle connections by key: the newest of a key is used first, the oldest of all is evicted first. Pure: the caller
closes connections."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)


class Pool(Generic[C]):
    """At most `size` connections, none idle for longer than `keepalive_s`. Every operation is O(1) amortised.

    Invariant: a connection is in `_idle` exactly if it is in the list of its key; `_idle` is in order of arrival.
    """

    def __init__(self, size: int, keepalive_s: float) -> None:
        self._size = size
        self._keepalive_s = keepalive_s
        self._by_key: dict[Hashable, list[C]] = {}
        self._idle: dict[C, tuple[Hashable, float]] = {}

    def __len__(self) -> int:
        return len(self._idle)

    def take(self, keys: Iterable[Hashable]) -> C | None:
        """The most recently used connection of the first key that has one."""
        for key in keys:
            connections = self._by_key.get(key)
            if connections:
                connection = connections.pop()
                del self._idle[connection]
                if not connections:
                    del self._by_key[key]
                return connection
        return None

    def put(self, key: Hashable, connection: C, now: float) -> C | None:
        """Store a connection; returns the evicted one, which the caller closes."""
        if self._size <= 0:
            return connection
        evicted = None
        if len(self._idle) >= self._size:
            evicted = next(iter(self._idle))
            self.remove(self._idle[evicted][0], evicted)
        self._idle[connection] = (key, now)
        self._by_key.setdefault(key, []).append(connection)
        return evicted

    def remove(self, key: Hashable, connection: C) -> bool:
        """Remove a closed connection; False when it was not stored."""
        if self._idle.pop(connection, None) is None:
            return False
        connections = self._by_key[key]
        connections.remove(connection)
        if not connections:
            del self._by_key[key]
        return True

    def expired(self, now: float) -> list[C]:
        """Remove and return the connections that were idle for too long."""
        found = []
        for connection, (_, since) in self._idle.items():
            if now - since < self._keepalive_s:
                break
            found.append(connection)
        for connection in found:
            self.remove(self._idle[connection][0], connection)
        return found

    def drain(self) -> list[C]:
        """Remove and return all connections."""
        everything = list(self._idle)
        self._idle.clear()
        self._by_key.clear()
        return everything

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken."""
        listed = [(key, connection) for key, connections in self._by_key.items() for connection in connections]
        assert all(self._by_key.values()), "a key without connections"
        assert {connection: key for key, connection in listed} == {c: k for c, (k, _) in self._idle.items()}
        assert len(listed) == len(self._idle) <= self._size
        times = [since for _, since in self._idle.values()]
        assert times == sorted(times), "not in order of arrival"
