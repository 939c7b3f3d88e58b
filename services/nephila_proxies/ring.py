"""The ring of proxies: sorted by quality, joined end to end; each domain walks it from the head. Pure.

The first request of a domain uses the best proxy, the next one the second best, and so on: good proxies are used first,
and the requests of one domain spread evenly over all. Busy proxies and those that the domain blocks are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

P = TypeVar("P", bound=Hashable)


class Ring(Generic[P]):
    """Members in order of quality, which of them are free, and the position of each domain.

    `pick` finds the next free member by a search over a byte per member, 0.2 µs per 10^4 members that are busy. A
    domain moves on by one member per request; busy members do not count, so domains of the same pace do not push each
    other around the ring. At most `max_domains` positions are kept; the oldest domain begins at the head again.
    """

    def __init__(self, max_domains: int = 100_000) -> None:
        self._members: Sequence[P] = ()
        self._index: dict[P, int] = {}
        self._free = bytearray()
        self._max_domains = max_domains
        self._position: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._members)

    def replace(self, members: Sequence[P], is_free: Callable[[P], bool]) -> None:
        """Set the members, best first. Each domain continues at its position: the order changes little at a time."""
        self._members = members
        self._index = {member: number for number, member in enumerate(members)}
        self._free = bytearray(map(is_free, members))

    def set_free(self, member: P, free: bool) -> None:
        """A member can or cannot take a request now; without effect for others."""
        number = self._index.get(member)
        if number is not None:
            self._free[number] = free

    def pick(self, domain: str, accepts: Callable[[P], bool]) -> P | None:
        """The next free member for a domain that is accepted; None when none is."""
        free, members, size = self._free, self._members, len(self._members)
        if not size:
            return None
        position = self._position.get(domain)
        start = (position or 0) % size
        for first, last in ((start, size), (0, start)):
            number = free.find(1, first, last)
            while number >= 0:
                member = members[number]
                if accepts(member):
                    if position is None and len(self._position) >= self._max_domains:
                        del self._position[next(iter(self._position))]
                    self._position[domain] = start + 1
                    return member
                number = free.find(1, number + 1, last)
        return None

    def check(self) -> None:
        """Raise AssertionError when an invariant is broken."""
        assert len(self._position) <= self._max_domains
        assert all(position >= 0 for position in self._position.values())
        assert len(self._free) == len(self._members) == len(self._index)
        assert all(self._members[number] is member for member, number in self._index.items())
