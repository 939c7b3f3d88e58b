"""The claims of all schedulers on server addresses, derived from one totally ordered topic. Pure.

Claims on an address queue in the order of the topic; the first claimant may fetch until it releases the address. A
scheduler whose partitions all belong to others has left the group: its claims are removed, and the new owners of its
partitions announce what it had in flight. Every scheduler reads the same messages and computes the same table, so there
is no central owner and no clock is compared. This is Lamport's mutual exclusion queue (CACM 21(7), 1978) with the log's
order in place of his timestamps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from nephila.kernel.messages import AddressAnnouncement

MEMBER_TIMEOUT_S = 60.0
"""A member that has sent nothing for so long has left. This is ten times the shortest session of a broker; a heartbeat
comes every `address_lock.HEARTBEAT_S`."""

MemberId = tuple[str, int]
"""Name of a scheduler, and its incarnation."""


@dataclass(slots=True)
class Changes:
    """Effects of a message."""

    addresses: set[str] = field(default_factory=set)
    """Addresses with another first claimant, another waiting claimant, or fewer fetches in flight."""
    departed: set[MemberId] = field(default_factory=set)
    """Members without a partition."""
    orphaned: set[str] = field(default_factory=set)
    """Addresses whose first claimant departed: the time of its last start is unknown."""


class AddressClaims:
    """The claims of all members on addresses. Memory O(claims). A message costs O(its entries), a departed member
    O(claims)."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.owners: dict[int, tuple[int, MemberId]] = {}
        """Partition → epoch and member of its latest known owner."""
        self.claims: dict[str, list[MemberId]] = {}
        self.in_flight: dict[str, dict[MemberId, int]] = {}
        self.gap_until: dict[str, float] = {}
        """Released address → end of its gap, on the reader's clock."""
        self._purge_at = 1000
        self.counting = False
        """Claims count; before that only owners do."""
        self._announced: set[int] = set()
        """Partitions whose owner has announced itself since."""
        self._owned: Counter[MemberId] = Counter()
        self._last_message_at: dict[MemberId, float] = {}

    def begin(self) -> None:
        """Count everything from here on: all members announce themselves now."""
        self.counting = True
        self.claims.clear()
        self.in_flight.clear()
        self._announced.clear()

    def stop(self) -> None:
        """Count nothing until `begin`."""
        self.counting = False

    @property
    def complete(self) -> bool:
        """Whether the latest owners of all partitions have announced their claims."""
        return self.counting and len(self._announced) == self.partitions

    def is_alone(self, who: MemberId) -> bool:
        """Whether no other member has a partition."""
        return self._owned[who] == self.partitions

    def first(self, address: str) -> MemberId | None:
        """The member that may fetch from the address."""
        claims = self.claims.get(address)
        return claims[0] if claims else None

    def others(self, address: str, who: MemberId) -> int:
        """Fetches in flight there that belong to other members."""
        busy = self.in_flight.get(address)
        return sum(count for member, count in busy.items() if member != who) if busy else 0

    def take(self, message: AddressAnnouncement, now: float) -> Changes:
        """The next message of the topic; `now` is the reader's time."""
        who = (message.member, message.incarnation)
        changes = Changes()
        self._last_message_at[who] = now
        for partition in message.partitions:
            self._own(who, partition.partition, partition.epoch, changes)
        if not self.counting or not self._owned[who]:
            return changes  # a departed member does not count
        for address in message.claims:
            claims = self.claims.setdefault(address, [])
            if who not in claims:
                claims.append(who)
                changes.addresses.add(address)
        for passed in message.released:
            self._passed(who, passed.address, passed.reclaimed, changes)
            self._set_in_flight(who, passed.address, passed.in_flight)
            self._rest(passed.address, now + passed.wait_s, now)
        for busy in message.in_flight:
            self._set_in_flight(who, busy.address, busy.count)
            changes.addresses.add(busy.address)
        return changes

    def drop_silent(self, now: float, but: MemberId) -> Changes:
        """Remove members that have sent nothing for MEMBER_TIMEOUT_S. Their partitions then have no owner, with any
        epoch: the log that numbers epochs may have been created again. O(partitions) per member."""
        changes = Changes()
        for who in [who for who, at in self._last_message_at.items() if now > at + MEMBER_TIMEOUT_S and who != but]:
            del self._last_message_at[who]
            self._gone(who, changes)
            for partition in [partition for partition, (_, owner) in self.owners.items() if owner == who]:
                del self.owners[partition]
                self._announced.discard(partition)
            del self._owned[who]
        return changes

    def _own(self, who: MemberId, partition: int, epoch: int, changes: Changes) -> None:
        before = self.owners.get(partition)
        if before is not None and before[0] > epoch:
            return  # the sender has lost the partition without knowing it
        self.owners[partition] = (epoch, who)
        self._announced.add(partition)
        if before is None or before[1] != who:
            self._owned[who] += 1
            if before is not None:
                self._owned[before[1]] -= 1
                if not self._owned[before[1]]:
                    self._gone(before[1], changes)

    def _gone(self, who: MemberId, changes: Changes) -> None:
        changes.departed.add(who)
        for address in [address for address, claims in self.claims.items() if who in claims]:
            if self.claims[address][0] == who:
                changes.orphaned.add(address)
            self._passed(who, address, False, changes)
        for address in [address for address, busy in self.in_flight.items() if who in busy]:
            self._set_in_flight(who, address, 0)
            changes.addresses.add(address)

    def _passed(self, who: MemberId, address: str, again: bool, changes: Changes) -> None:
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
            self.gap_until[address] = max(until, self.gap_until.get(address, until))
        if len(self.gap_until) > self._purge_at:
            self.gap_until = {resting: until for resting, until in self.gap_until.items() if until > now}
            self._purge_at = 2 * len(self.gap_until) + 1000

    def _set_in_flight(self, who: MemberId, address: str, count: int) -> None:
        if count:
            self.in_flight.setdefault(address, {})[who] = count
        elif address in self.in_flight:
            self.in_flight[address].pop(who, None)
            if not self.in_flight[address]:
                del self.in_flight[address]

    def check(self, whos: Iterable[MemberId]) -> None:
        """Raise AssertionError when an invariant does not hold: every claim is of one of these members, once.
        O(everything)."""
        members = set(whos)
        assert self._owned == Counter(who for _, who in self.owners.values()), "partitions are miscounted"
        for address, claims in self.claims.items():
            assert claims, f"an empty queue at {address}"
            assert len(claims) == len(set(claims)), f"a member claims {address} twice"
            assert set(claims) <= members, f"a departed member claims {address}"
        for address, busy in self.in_flight.items():
            assert min(busy.values(), default=0) > 0, f"nothing is in flight at {address}"
