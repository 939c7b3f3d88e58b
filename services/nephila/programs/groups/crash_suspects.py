"""URLs that were in flight when a group died: one of them may have caused that. Pure.

They are probed one at a time, each alone in the group (`bus/poison.py`); one that passes is no suspect any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from nephila.kernel.bus.pipe.protocol import Key
from nephila.kernel.bus.poison import Probe

MAX_SUSPECTS = 16_384
"""Suspects remembered; some never return, as those of a deleted job."""


class CrashSuspects:
    """The suspects of one group. Every operation is O(1) per URL."""

    def __init__(self) -> None:
        self._probes: OrderedDict[Key, Probe] = OrderedDict()
        self.probing: Key | None = None
        """The suspect that is being probed."""

    def __contains__(self, key: Key) -> bool:
        return key in self._probes

    def __len__(self) -> int:
        return len(self._probes)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._probes)

    def died(self, keys: Iterable[Key], alone: bool) -> Key | None:
        """The group died with these in flight; returns the poison URL if it is known now. `alone`: a suspect was
        probed."""
        if alone and self.probing is not None:
            key, self.probing = self.probing, None
            self._probes[key] = probe = self._probes.get(key, Probe()).delivered().crashed()
            if not probe.is_poison:
                return None
            del self._probes[key]
            return key
        for key in keys:
            self._probes.setdefault(key, Probe())
        while len(self._probes) > MAX_SUSPECTS:
            self._probes.popitem(last=False)
        return None

    def probed(self, key: Key, through: bool) -> None:
        """A probe has ended; `through` when the URL was really fetched."""
        if key == self.probing:
            self.probing = None
        if through:
            self._probes.pop(key, None)
