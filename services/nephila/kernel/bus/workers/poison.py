"""URLs that a worker had in its hands when it died: one of them may be what killed it. Pure.

They are tried again one at a time, each alone in a worker. Invariant: a URL is found poison only when it was alone in a
worker at `MAX_CRASHES` deaths; one that came through is a suspect no more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

Key = tuple[str, bytes]

MAX_CRASHES = 2
"""Deaths alone. One may be chance: memory ran out, somebody killed the process."""
MAX_SUSPECTS = 16_384
"""CrashSuspects remembered; some never come back, as those of a job that was deleted."""


class CrashSuspects:
    """Every operation is O(1) per URL."""

    def __init__(self) -> None:
        self._crashes: OrderedDict[Key, int] = OrderedDict()
        self.probing: Key | None = None
        """The one that is being tried."""

    def __contains__(self, key: Key) -> bool:
        return key in self._crashes

    def __len__(self) -> int:
        return len(self._crashes)

    def worker_crashed(self, keys: Iterable[Key], alone: bool) -> Key | None:
        """A worker died with these in its hands; returns the poison one if that is known now. `alone`: it was the
        worker where suspects are tried."""
        if alone and self.probing is not None:
            key, self.probing = self.probing, None
            self._crashes[key] = deaths = self._crashes.get(key, 0) + 1
            if deaths >= MAX_CRASHES:
                del self._crashes[key]
                return key
            return None
        for key in keys:
            self._crashes.setdefault(key, 0)
        while len(self._crashes) > MAX_SUSPECTS:
            self._crashes.popitem(last=False)
        return None

    def probed(self, key: Key, through: bool) -> None:
        """The one that was alone has ended; `through` when it was really tried."""
        if key == self.probing:
            self.probing = None
        if through:
            self._crashes.pop(key, None)
