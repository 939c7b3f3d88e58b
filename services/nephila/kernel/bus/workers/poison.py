"""URLs that a worker had in its hands when it died: one of them may be what killed it. Pure.

They are tried again one at a time, each alone in a worker. Invariant: a URL is found guilty only when it was alone in a
worker at `GUILTY` deaths; one that came through is a suspect no more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

Key = tuple[str, bytes]

GUILTY = 2
"""Deaths alone. One may be chance: memory ran out, somebody killed the process."""
MOST = 16_384
"""Suspects remembered; some never come back, as those of a job that was deleted."""


class Suspects:
    """Every operation is O(1) per URL."""

    def __init__(self) -> None:
        self._deaths: OrderedDict[Key, int] = OrderedDict()
        self.alone: Key | None = None
        """The one that is being tried."""

    def __contains__(self, key: Key) -> bool:
        return key in self._deaths

    def __len__(self) -> int:
        return len(self._deaths)

    def died(self, keys: Iterable[Key], alone: bool) -> Key | None:
        """A worker died with these in its hands; returns the guilty one if that is known now. `alone`: it was the
        worker where suspects are tried."""
        if alone and self.alone is not None:
            key, self.alone = self.alone, None
            self._deaths[key] = deaths = self._deaths.get(key, 0) + 1
            if deaths >= GUILTY:
                del self._deaths[key]
                return key
            return None
        for key in keys:
            self._deaths.setdefault(key, 0)
        while len(self._deaths) > MOST:
            self._deaths.popitem(last=False)
        return None

    def tried(self, key: Key, through: bool) -> None:
        """The one that was alone has ended; `through` when it was really tried."""
        if key == self.alone:
            self.alone = None
        if through:
            self._deaths.pop(key, None)
