"""Whose turn it is at each server address: what all schedulers read in one order, and what follows from it. Pure.

A claim stands behind those before it; the first may fetch, until it passes the address on. A scheduler whose partitions
are all others' by now is gone, and its claims with it; what it had in flight is told by who has its partitions. So
nobody owns an address or the book: everyone who reads the same words comes to the same, and no clock is asked.
Lamport's queue (CACM 21(7), 1978) with the log for his time stamps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from nephila.kernel.messages import AddressWord

SILENT_S = 60.0
"""Who says nothing for so long is gone or of a release that knows no such words: ten times the least that a broker
needs to give its partitions to others. A sign of life comes every `turns.LIFE_S`."""

Who = tuple[str, int]
"""A scheduler, and which of its lives."""


@dataclass(slots=True)
class Changes:
    """What a word has changed."""

    addresses: set[str] = field(default_factory=set)
    """Another is first there, another waits, or fewer fetches are in flight."""
    gone: set[Who] = field(default_factory=set)
    """Who has no partition any more."""
    orphaned: set[str] = field(default_factory=set)
    """Addresses whose first is gone: when it started last is not known."""


class TurnBook:
    """Memory O(claims); a word is O(what is in it), the end of a scheduler O(claims)."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.owners: dict[int, tuple[int, Who]] = {}
        """Partition → epoch and scheduler of the latest owner that was heard of."""
        self.claims: dict[str, list[Who]] = {}
        self.busy: dict[str, dict[Who, int]] = {}
        self.rests: dict[str, float] = {}
        """Address that was passed on → when its gap is over, for the reader."""
        self._purge_at = 1000
        self.reading = False
        """Claims count; before that only owners do."""
        self._told: set[int] = set()
        """Partitions whose owner was heard of since."""
        self._owned: Counter[Who] = Counter()
        self._heard: dict[Who, float] = {}

    def begin(self) -> None:
        """From here on everything counts: all say now what there is."""
        self.reading = True
        self.claims.clear()
        self.busy.clear()
        self._told.clear()

    def stop(self) -> None:
        """Nothing counts until `begin`."""
        self.reading = False

    @property
    def whole(self) -> bool:
        """Whether the latest owners of all partitions have said what there is."""
        return self.reading and len(self._told) == self.partitions

    def is_alone(self, who: Who) -> bool:
        """Whether nobody else has a partition."""
        return self._owned[who] == self.partitions

    def first(self, address: str) -> Who | None:
        """Who may fetch there."""
        claims = self.claims.get(address)
        return claims[0] if claims else None

    def others(self, address: str, who: Who) -> int:
        """Fetches in flight there that are not this scheduler's."""
        busy = self.busy.get(address)
        return sum(count for one, count in busy.items() if one != who) if busy else 0

    def take(self, word: AddressWord, now: float) -> Changes:
        """The next word of the topic; `now` is the reader's own."""
        who = (word.member, word.life)
        changes = Changes()
        self._heard[who] = now
        for one in word.owns:
            self._own(who, one.partition, one.epoch, changes)
        if not self.reading or not self._owned[who]:
            return changes  # of one that is gone nothing counts
        for address in word.claims:
            claims = self.claims.setdefault(address, [])
            if who not in claims:
                claims.append(who)
                changes.addresses.add(address)
        for passed in word.passed:
            self._passed(who, passed.address, passed.again, changes)
            self._set_busy(who, passed.address, passed.busy)
            self._rest(passed.address, now + passed.wait_s, now)
        for busy in word.busy:
            self._set_busy(who, busy.address, busy.count)
            changes.addresses.add(busy.address)
        return changes

    def drop_silent(self, now: float, but: Who) -> Changes:
        """Those who have said nothing for SILENT_S are gone; what was theirs is nobody's, of whatever epoch: the log
        that it is of may have been made anew. O(partitions) for each."""
        changes = Changes()
        for who in [who for who, at in self._heard.items() if now > at + SILENT_S and who != but]:
            del self._heard[who]
            self._gone(who, changes)
            for partition in [partition for partition, (_, owner) in self.owners.items() if owner == who]:
                del self.owners[partition]
                self._told.discard(partition)
            del self._owned[who]
        return changes

    def _own(self, who: Who, partition: int, epoch: int, changes: Changes) -> None:
        before = self.owners.get(partition)
        if before is not None and before[0] > epoch:
            return  # it does not know yet that it has lost it
        self.owners[partition] = (epoch, who)
        self._told.add(partition)
        if before is None or before[1] != who:
            self._owned[who] += 1
            if before is not None:
                self._owned[before[1]] -= 1
                if not self._owned[before[1]]:
                    self._gone(before[1], changes)

    def _gone(self, who: Who, changes: Changes) -> None:
        changes.gone.add(who)
        for address in [address for address, claims in self.claims.items() if who in claims]:
            if self.claims[address][0] == who:
                changes.orphaned.add(address)
            self._passed(who, address, False, changes)
        for address in [address for address, busy in self.busy.items() if who in busy]:
            self._set_busy(who, address, 0)
            changes.addresses.add(address)

    def _passed(self, who: Who, address: str, again: bool, changes: Changes) -> None:
        claims = self.claims.get(address, [])
        if who in claims:
            claims.remove(who)
            if again:
                claims.append(who)
            if not claims:
                del self.claims[address]
            changes.addresses.add(address)

    def _rest(self, address: str, until: float, now: float) -> None:
        if until > now:
            self.rests[address] = max(until, self.rests.get(address, until))
        if len(self.rests) > self._purge_at:
            self.rests = {one: until for one, until in self.rests.items() if until > now}
            self._purge_at = 2 * len(self.rests) + 1000

    def _set_busy(self, who: Who, address: str, count: int) -> None:
        if count:
            self.busy.setdefault(address, {})[who] = count
        elif address in self.busy:
            self.busy[address].pop(who, None)
            if not self.busy[address]:
                del self.busy[address]

    def check(self, whos: Iterable[Who]) -> None:
        """Raise AssertionError when an invariant does not hold: claims are of these, each once. O(everything)."""
        known = set(whos)
        assert self._owned == Counter(who for _, who in self.owners.values()), "partitions are miscounted"
        for address, claims in self.claims.items():
            assert claims, f"an empty line at {address}"
            assert len(claims) == len(set(claims)), f"somebody stands twice at {address}"
            assert set(claims) <= known, f"somebody who is gone stands at {address}"
        for address, busy in self.busy.items():
            assert min(busy.values(), default=0) > 0, f"nothing is in flight at {address}"
