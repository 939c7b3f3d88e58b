"""One scheduler's lock on server addresses: what it claims, holds and releases, and the messages for that. Pure.

A fetch from an address starts only while this scheduler is the first claimant (address_claims.py). A scheduler that is
alone sends nothing and holds everything. An address that no other member wants is kept, also while its hosts wait. An
address that another member wants is released after TURN_S, or at once when no host here waits for it, and never before
all its started fetches are published: a late start would fall into the next member's turn. A scheduler that starts, or
was silent for too long, first requests an announcement from all members, and waits until the owners of all partitions
have announced their claims and fetches in flight.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Protocol

from nephila.kernel.messages import AddressAnnouncement, AddressInFlight, AddressReleased, PartitionOwned
from nephila.kernel.runtime.states import checked

from nephila_cluster.scheduler.addresses.address_claims import MEMBER_TIMEOUT_S, AddressClaims, Changes, MemberId

log = logging.getLogger(__name__)

TURN_S = 3.0
"""Length of a turn while others wait: 12 fetches at a gap of 0.25 s."""
IDLE_RELEASE_S = 60.0
"""An address without a fetch for so long is released; hosts with a longer delay claim it each time."""
HEARTBEAT_S = 10.0
"""A message is sent at least this often."""
NO_ECHO_S = 0.75 * MEMBER_TIMEOUT_S
"""A member that has not read its own messages for so long restarts, before others take it for departed."""
CLAIMS_PER_MESSAGE = 5000
"""About 100 KiB of addresses."""


class LockState(Enum):
    """What this scheduler knows of the claims of the others."""

    STOPPED = "stopped"
    """It has owned no partition yet."""
    ASKING = "asking"
    """Its request for announcements is due."""
    ASKED = "asked"
    """Announcements are missing."""
    SHARED = "shared"
    """All claims are known."""
    ALONE = "alone"
    """No other scheduler owns a partition."""


NEXT_STATES: dict[LockState, tuple[LockState, ...]] = {
    LockState.STOPPED: (LockState.ASKING,),
    LockState.ASKING: (LockState.ASKING, LockState.ASKED),
    LockState.ASKED: (LockState.ASKING, LockState.SHARED, LockState.ALONE),
    LockState.SHARED: (LockState.ASKING, LockState.ALONE),
    LockState.ALONE: (LockState.ASKING, LockState.SHARED),
}


class LocalAddresses(Protocol):
    """The state of addresses in this program."""

    def in_flight(self, address: str) -> int:
        """Fetches that were started and have not ended."""

    def wait_s(self, address: str, now: float) -> float:
        """Seconds until the gap after the last start is over."""

    def delay_until(self, address: str, until: float) -> None:
        """No fetch starts at the address before this time."""

    def gap_s(self, address: str) -> float:
        """Seconds between two starts there."""

    def has_line(self, address: str) -> bool:
        """Whether a host waits for it."""

    def in_use(self) -> Iterable[str]:
        """Addresses with a fetch, a gap or a waiting host."""

    def mark(self) -> Callable[[], bool]:
        """A function that returns whether everything started by now has been published."""


class HeldClaim:
    """A claim of this scheduler."""

    __slots__ = ("since", "started", "used")

    def __init__(self, now: float) -> None:
        self.since = now
        """When it became the first."""
        self.used = now
        self.started = False
        """A fetch was started in this turn."""


class AddressLock:
    """Operations are O(1); `messages_to_send` is O(addresses that others wait for)."""

    def __init__(self, member: str, life: int, partitions: int, here: LocalAddresses) -> None:
        self.me: MemberId = (member, life)
        self.table = AddressClaims(partitions)
        self.state = LockState.STOPPED
        self.entries_sent = 0
        """Entries published, for metrics."""
        self._here = here
        self._own: dict[int, int] = {}
        """Partition → epoch of the partitions owned here."""
        self._unannounced: set[int] = set()
        self._asked_at = 0.0
        self._answer = False
        """Another member has requested an announcement."""
        self._wanted: dict[str, None] = {}
        self._claimed: dict[str, HeldClaim] = {}
        """Published claims."""
        self._held: OrderedDict[str, HeldClaim] = OrderedDict()
        """Claims that are first, the least recently used in front."""
        self._contested: set[str] = set()
        self._releasing: dict[str, Callable[[], bool]] = {}
        """Addresses on which nothing starts any more → whether all started fetches are published."""
        self._released: set[str] = set()
        """Released addresses whose message has not been read back yet."""
        self._in_flight: dict[str, int] = {}
        """Address that others may hold → published count of fetches in flight."""
        self._said_at = float("-inf")
        self._read_at = float("-inf")
        """When a message of this member was read back last."""

    @property
    def synced(self) -> bool:
        """The claims of the other members are known."""
        return self.state in (LockState.SHARED, LockState.ALONE)

    def _enter(self, state: LockState) -> None:
        self.state = checked(NEXT_STATES, self.state, state, "address lock")

    # ---- partitions

    def own(self, partition: int, epoch: int) -> None:
        """A partition is owned from now on, with the fetches in flight of its previous owner."""
        if not self._own:
            self._restart()
        self._own[partition] = epoch
        self._unannounced.add(partition)

    def disown(self, partition: int) -> None:
        """The partition is not owned any more."""
        self._own.pop(partition, None)
        self._unannounced.discard(partition)

    def is_announced(self, partition: int, epoch: int) -> bool:
        """Whether all members know the owner of the partition; nothing may be dispatched before."""
        return self.table.owners.get(partition) == (epoch, self.me)

    def is_superseded(self, partition: int, epoch: int) -> bool:
        """Whether a later owner has announced what is in flight."""
        return self.table.owners.get(partition, (-1, self.me))[0] > epoch

    def _restart(self) -> None:
        """Other members may have removed this one: it comes back as a new incarnation."""
        self.me = (self.me[0], self.me[1] + 1)
        self._unannounced.update(self._own)
        self._wanted = {address: None for address in self._here.in_use() if self._here.has_line(address)}
        self.table.stop()
        self._answer = False
        self._enter(LockState.ASKING)
        self._claimed.clear()
        self._held.clear()
        self._contested.clear()
        self._releasing.clear()
        self._released.clear()
        self._in_flight.clear()

    # ---- questions

    def held(self, address: str) -> bool:
        """Whether the other schedulers allow a fetch from the address."""
        return self.state is LockState.ALONE or (address in self._held and address not in self._releasing)

    @property
    def held_count(self) -> int:
        """Addresses held at present; 0 while this scheduler is alone."""
        return len(self._held)

    def others(self, address: str) -> int:
        """Fetches in flight of other schedulers."""
        return self.table.others(address, self.me)

    def want(self, address: str) -> None:
        """A host waits for the address."""
        if self.state is not LockState.ALONE and address not in self._claimed:
            self._wanted[address] = None

    def record_use(self, address: str, now: float) -> None:
        """A fetch starts there."""
        hold = self._held.get(address)
        if hold is not None:
            hold.used, hold.started = now, True
            self._held.move_to_end(address)

    # ---- messages read

    def take(self, message: AddressAnnouncement, now: float) -> set[str]:
        """The next message of the topic; returns addresses that may have a free slot now."""
        mine = (message.member, message.incarnation) == self.me
        if mine:
            self._read_at = now
            self._released.difference_update(release.address for release in message.released)
        if mine and message.sync_request and not self.table.counting:
            self.table.begin()
            self._asked_at = now
        elif message.sync_request and not mine:
            self._answer = bool(self._own)
        return self._changed(self.table.take(message, now), now)

    def drop_silent(self, now: float) -> set[str]:
        """The scheduler calls it periodically."""
        changes = self.table.drop_silent(now, self.me)
        if changes.departed:
            # Announcements that did not count because of a later owner, which has departed.
            self._unannounced.update(
                partition for partition, epoch in self._own.items() if not self.is_announced(partition, epoch)
            )
        return self._changed(changes, now)

    def _changed(self, changes: Changes, now: float) -> set[str]:
        if self.me in changes.departed and self._own:
            self._restart()  # its present claims are unknown to the others
        for address in changes.orphaned:
            self._here.delay_until(address, now + self._here.gap_s(address))
        look = self._look_at_all(now)
        for address in changes.addresses:
            if self._look_at(address, now) and self.table.gap_until.get(address, now) > now:
                self._here.delay_until(address, self.table.gap_until[address])
        return changes.addresses | look

    def _look_at_all(self, now: float) -> set[str]:
        """Whether the claims of all are known, and whether this scheduler is alone."""
        before = self.state
        if not self.synced and not self.table.complete and not self._waited_enough(now):
            return set()
        state = LockState.ALONE if self.table.is_alone(self.me) else LockState.SHARED
        if state is before:
            return set()
        self._enter(state)
        in_use = set(self._here.in_use())
        if before is LockState.ALONE:
            # This scheduler holds everything in use; the new member waits until it has read that.
            for address in in_use:
                self._claimed[address] = self._held[address] = HeldClaim(now)
                self.table.claims[address] = [self.me]
            self._answer = True
        if state is LockState.SHARED:
            return set()
        self._claimed.clear()
        self._held.clear()
        self._contested.clear()
        self._wanted.clear()
        self._releasing.clear()
        self._released.clear()
        self._in_flight.clear()
        self.table.claims.clear()
        return in_use

    def _waited_enough(self, now: float) -> bool:
        if not self.table.counting or now < self._asked_at + MEMBER_TIMEOUT_S:
            return False
        log.warning("some partitions have no scheduler that announces its server addresses; continuing without them")
        return True

    def _look_at(self, address: str, now: float) -> bool:
        """Take over the first claimant of an address; True when this scheduler became it."""
        hold = self._claimed.get(address)
        if hold is None:
            return False
        claims = self.table.claims.get(address, [])
        is_first = bool(claims) and claims[0] == self.me and address not in self._released
        (self._contested.add if is_first and len(claims) > 1 else self._contested.discard)(address)
        if is_first == (address in self._held):
            return False
        if is_first:
            hold.since = hold.used = now
            hold.started = False
            self._held[address] = hold
        else:
            self._held.pop(address)
        return is_first

    # ---- messages to send

    @property
    def has_pending(self) -> bool:
        """Whether there is something to send, now or as time passes; HEARTBEAT_S apart."""
        return bool(
            self._unannounced or self._answer or self._wanted or self._contested or self._releasing or self._in_flight
        ) and bool(self._own)

    @property
    def _has_asked(self) -> bool:
        return self.state not in (LockState.STOPPED, LockState.ASKING)

    def messages_to_send(self, now: float) -> list[AddressAnnouncement]:
        """What to publish, in this order."""
        if not self._own:
            return []
        if self._has_asked and now > max(self._read_at, self._asked_at) + NO_ECHO_S:
            self._restart()  # the others may have removed this member
        if self._has_asked and not self.table.counting:
            return []
        message = AddressAnnouncement(*self.me)
        more = self._about_itself(message, now)
        if self.state is LockState.SHARED:
            self._release_due(message, now)
            self._claim(message)
        self._report_in_flight(message)
        empty = not (
            message.sync_request or message.partitions or message.claims or message.released or message.in_flight
        )
        if empty and now < self._said_at + HEARTBEAT_S:
            return more
        self._said_at = now
        self.entries_sent += len(message.claims) + len(message.released) + len(message.in_flight)
        # Repeated claims come first: the list of partitions completes the announcement.
        return [*more, message]

    def _about_itself(self, message: AddressAnnouncement, now: float) -> list[AddressAnnouncement]:
        more = []
        if self.state is LockState.ASKING:
            self._enter(LockState.ASKED)
            message.sync_request = True
            self._asked_at = now
        elif self._answer:
            claims = list(self._claimed)
            self._unannounced.update(self._own)
            pieces = range(0, len(claims), CLAIMS_PER_MESSAGE)
            more = [AddressAnnouncement(*self.me, claims=claims[at : at + CLAIMS_PER_MESSAGE]) for at in pieces]
        self._answer = False
        owners = self.table.owners
        for partition in sorted(self._unannounced):
            epoch = self._own[partition]
            if owners.get(partition, (-1, self.me))[0] <= epoch:
                message.partitions.append(PartitionOwned(partition, epoch))
        if message.partitions:
            self._collect_in_flight()
        self._unannounced.clear()
        return more

    def _collect_in_flight(self) -> None:
        """Fetches in flight on addresses that others may hold are announced with their partitions."""
        for address in self._here.in_use():
            if address not in self._held and self._here.in_flight(address):
                self._in_flight[address] = 0

    def _claim(self, message: AddressAnnouncement) -> None:
        for address in self._wanted:
            if address not in self._claimed:
                self._claimed[address] = HeldClaim(0.0)
                message.claims.append(address)
        self._wanted.clear()

    def _release_due(self, message: AddressAnnouncement, now: float) -> None:
        mark = None
        for address in [*self._contested, *self._unused(now)]:
            if address not in self._releasing and (address not in self._contested or self._is_over(address, now)):
                mark = mark or self._here.mark()
                self._releasing[address] = mark
        for address in [address for address, is_out in self._releasing.items() if is_out()]:
            del self._releasing[address]
            message.released.append(self._release(address, now))

    def _unused(self, now: float) -> list[str]:
        """Addresses that no host needed for IDLE_RELEASE_S."""
        unused = []
        while self._held:
            address, hold = next(iter(self._held.items()))
            if hold.used + IDLE_RELEASE_S > now:
                break
            if not self._here.has_line(address) and not self._here.wait_s(address, now):
                unused.append(address)
            hold.used = now
            self._held.move_to_end(address)
        return unused

    def _is_over(self, address: str, now: float) -> bool:
        hold = self._held[address]
        if not self._here.has_line(address):
            return True
        slice_s = TURN_S if hold.started else 4 * max(TURN_S, self._here.gap_s(address))
        return now >= hold.since + slice_s

    def _release(self, address: str, now: float) -> AddressReleased:
        """This scheduler does not hold the address any more; the claims change when the message is read."""
        again = self._here.has_line(address)
        if not again:
            self._claimed.pop(address, None)
        self._held.pop(address, None)
        self._contested.discard(address)
        self._released.add(address)
        busy = self._here.in_flight(address)
        if busy:
            self._in_flight[address] = busy
        return AddressReleased(address, self._here.wait_s(address, now), again, busy)

    def _report_in_flight(self, message: AddressAnnouncement) -> None:
        """Ended fetches free slots for other members."""
        for address, reported in list(self._in_flight.items()):
            count = self._here.in_flight(address)
            if address in self._held or not count:
                del self._in_flight[address]
                count = 0
            else:
                self._in_flight[address] = count
            if count != reported:
                message.in_flight.append(AddressInFlight(address, count))
