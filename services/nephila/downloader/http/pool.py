"""Idle connections by key: the newest of a key is used first, the oldest of all is evicted first. Pure: the caller
closes connections.

The size follows what hosts return. It grows by one when a key is requested whose connection was evicted less than
`keepalive_s` before, and falls by one when a connection was idle for so long.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)


class Pool(Generic[C]):
    """From `size` to `most` connections, none idle for longer than `keepalive_s`. Every operation is O(1) amortised.

    Invariant: a connection is in `_idle` exactly if it is in the list of its key; `_idle` and `_evicted` are in order
    of arrival.
    """

    def __init__(self, size: int, keepalive_s: float, most: int = 0) -> None:
        self._least = self._size = size
        self._most = max(most, size)
        self._keepalive_s = keepalive_s
        self._evicted: dict[Hashable, float] = {}
        """Key → when its connection was evicted: `most` keys, for `keepalive_s`."""
        self._by_key: dict[Hashable, list[C]] = {}
        self._idle: dict[C, tuple[Hashable, float]] = {}

    def __len__(self) -> int:
        return len(self._idle)

    def take(self, keys: Iterable[Hashable]) -> C | None:
        """The most recently used connection of the first key that has one."""
        missed = False
        for key in keys:
            connections = self._by_key.get(key)
            if connections:
                connection = connections.pop()
                del self._idle[connection]
                if not connections:
                    del self._by_key[key]
                return connection
            if self._evicted and self._evicted.pop(key, None) is not None:
                missed = True
        if missed and self._size < self._most:
            self._size += 1
        return None

    @property
    def size(self) -> int:
        """The present limit."""
        return self._size

    def put(self, key: Hashable, connection: C, now: float) -> C | None:
        """Store a connection; returns the evicted one, which the caller closes."""
        if self._size <= 0:
            return connection
        evicted = None
        if len(self._idle) >= self._size:
            evicted = next(iter(self._idle))
            evicted_key = self._idle[evicted][0]
            self.remove(evicted_key, evicted)
            self._note_evicted(evicted_key, now)
        self._idle[connection] = (key, now)
        self._by_key.setdefault(key, []).append(connection)
        return evicted

    def _note_evicted(self, key: Hashable, now: float) -> None:
        if self._most == self._least:
            return
        evicted = self._evicted
        evicted.pop(key, None)
        evicted[key] = now
        while len(evicted) > self._most or now - next(iter(evicted.values())) > self._keepalive_s:
            del evicted[next(iter(evicted))]

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
        self._size = max(self._least, self._size - len(found))
        return found

    def drain(self) -> list[C]:
        """Remove and return all connections."""
        everything = list(self._idle)
        self._idle.clear()
        self._by_key.clear()
        self._evicted.clear()
        return everything

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken."""
        listed = [(key, connection) for key, connections in self._by_key.items() for connection in connections]
        assert all(self._by_key.values()), "a key without connections"
        assert {connection: key for key, connection in listed} == {c: k for c, (k, _) in self._idle.items()}
        assert len(listed) == len(self._idle) <= self._size
        assert self._least <= self._size <= self._most
        assert len(self._evicted) <= self._most
        times = [since for _, since in self._idle.values()]
        assert times == sorted(times), "not in order of arrival"
