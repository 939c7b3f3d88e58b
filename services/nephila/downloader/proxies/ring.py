"""The ring of proxies: sorted by quality, joined end to end; each domain walks it from the head. Pure.

The first request of a domain uses the best proxy, the next one the second best, and so on: good proxies are used first,
and the requests of one domain spread evenly over all. Busy proxies and those that the domain blocks are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

P = TypeVar("P")


class Ring(Generic[P]):
    """Members in order of quality, and the position of each domain.

    `pick` is O(1 + members passed over). At most `max_domains` positions are kept; the domain that came first is
    forgotten first, and begins at the head again.
    """

    def __init__(self, max_domains: int = 100_000) -> None:
        self._members: Sequence[P] = ()
        self._max_domains = max_domains
        self._position: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._members)

    def replace(self, members: Sequence[P]) -> None:
        """Set the members, best first. Each domain continues at its position: the order changes little at a time."""
        self._members = members

    def pick(self, domain: str, accepts: Callable[[P], bool]) -> P | None:
        """The next member for a domain that is accepted; None when none is."""
        members = self._members
        size = len(members)
        position = self._position.get(domain, 0)
        for step in range(position, position + size):
            member = members[step % size]
            if accepts(member):
                if position == 0 and domain not in self._position and len(self._position) >= self._max_domains:
                    del self._position[next(iter(self._position))]
                self._position[domain] = (step + 1) % size
                return member
        return None

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken."""
        assert len(self._position) <= self._max_domains
        assert all(position >= 0 for position in self._position.values())
