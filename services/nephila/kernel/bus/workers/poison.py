"""URLs that were in flight at a worker when it crashed: one of them may have caused the crash. Pure.

They are probed one at a time, each alone in a worker. Invariant: a URL is poison only after `MAX_CRASHES` crashes
while it was alone; one that passes is no suspect any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

Key = tuple[str, bytes]

MAX_CRASHES = 2
"""Crashes while probed alone. One crash may be chance: out of memory, or a kill from outside."""
MAX_SUSPECTS = 16_384
"""Suspects remembered; some never return, as those of a deleted job."""


class CrashSuspects:
    """Every operation is O(1) per URL."""

    def __init__(self) -> None:
        self._crashes: OrderedDict[Key, int] = OrderedDict()
        self.probing: Key | None = None
        """The suspect that is being probed."""

    def __contains__(self, key: Key) -> bool:
        return key in self._crashes

    def __len__(self) -> int:
        return len(self._crashes)

    def worker_crashed(self, keys: Iterable[Key], alone: bool) -> Key | None:
        """A worker crashed with these in flight; returns the poison URL if it is known now. `alone`: the worker that
        probes suspects."""
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
        """A probe has ended; `through` when the URL was really fetched."""
        if key == self.probing:
            self.probing = None
        if through:
            self._crashes.pop(key, None)
