"""The lock of one scheduler on one address: the states it can be in, and the events that change them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nephila.kernel.messages import AddressAnnouncement, AddressInFlight, AddressReleased, PartitionOwned
from nephila_cluster.scheduler.addresses.address_claims import MEMBER_TIMEOUT_S
from nephila_cluster.scheduler.addresses.address_lock import (
    HEARTBEAT_S,
    IDLE_RELEASE_S,
    TURN_S,
    AddressLock,
)

A, B, C = ("a", 1), ("b", 1), ("c", 1)
"""The scheduler under test has the partition 0, the others 1 and 2."""
X = "192.0.2.1"
GAP_S = 0.25


class Here:
    """`LocalAddresses` with the values that a test sets."""

    def __init__(self) -> None:
        self.flying: dict[str, int] = {}
        self.waits: dict[str, float] = {}
        self.lines: set[str] = set()
        self.delayed: dict[str, float] = {}
        self.out = True
        """Whether all started fetches are published."""

    def in_flight(self, address: str) -> int:
        return self.flying.get(address, 0)

    def wait_s(self, address: str, now: float) -> float:
        return self.waits.get(address, 0.0)

    def delay_until(self, address: str, until: float) -> None:
        self.delayed[address] = until

    def gap_s(self, address: str) -> float:
        return GAP_S

    def has_line(self, address: str) -> bool:
        return address in self.lines

    def in_use(self) -> Iterable[str]:
        return sorted(self.lines | set(self.flying) | set(self.waits))

    def mark(self) -> Callable[[], bool]:
        return lambda: self.out


class Rig:
    """The lock of A, the messages it sent that are not read yet, and the time."""

    def __init__(self, partitions: int = 3) -> None:
        self.here = Here()
        self.lock = AddressLock("a", 0, partitions, self.here)
        self.now = 100.0
        self.unread: list[AddressAnnouncement] = []
        self.sent: list[AddressAnnouncement] = []
        self.changed: set[str] = set()
        """Addresses that may have a free slot, by the messages read."""

    def send(self) -> list[AddressAnnouncement]:
        sent = self.lock.messages_to_send(self.now)
        self.unread += sent
        self.sent += sent
        return sent

    def read(self) -> None:
        """The topic returns the messages of A."""
        while self.unread:
            self.changed |= self.lock.take(self.unread.pop(0), self.now)

    def hear(self, who: tuple[str, int], **contents: Any) -> None:
        """The topic has a message of another member."""
        self.changed |= self.lock.take(AddressAnnouncement(*who, **contents), self.now)

    def pass_time(self, seconds: float, *members: tuple[str, int]) -> None:
        """With the messages of A and these members (all by default), HEARTBEAT_S apart at most."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(self.now + HEARTBEAT_S, end)
            self.send()
            self.read()
            for who in members or (B, C):
                self.hear(who)

    def claims(self) -> str:
        """The queue for X, by the letters of the members."""
        return "".join(who[0] for who in self.lock.table.claims.get(X, [])).upper()


def joined(*, unannounced: tuple[tuple[str, int], ...] = ()) -> Rig:
    """A with its partition, synchronised with B and C."""
    rig = Rig()
    rig.lock.own(0, 10)
    rig.send()
    rig.read()
    for partition, who in enumerate((B, C), 1):
        if who not in unannounced:
            rig.hear(who, partitions=[PartitionOwned(partition, 10)])
    assert rig.lock.me == A
    assert rig.lock.synced is not bool(unannounced)
    return rig


# ---- states of X at A


def unclaimed() -> Rig:
    """No host here needs it."""
    return joined()


def wanted() -> Rig:
    """A host waits; the claim is not sent."""
    rig = joined()
    rig.here.lines.add(X)
    rig.lock.want(X)
    return rig


def claiming() -> Rig:
    """The claim is sent, and the topic has not returned it."""
    rig = wanted()
    assert [message.claims for message in rig.send()] == [[X]]
    return rig


def waiting() -> Rig:
    """B is first."""
    rig = claiming()
    rig.hear(B, claims=[X])
    rig.read()
    return rig


def held() -> Rig:
    """A is first, nobody waits."""
    rig = claiming()
    rig.read()
    return rig


def contested() -> Rig:
    """A is first and has started a fetch; B waits."""
    rig = held()
    rig.lock.record_use(X, rig.now)
    rig.here.flying[X] = 1
    rig.here.waits[X] = 0.2
    rig.hear(B, claims=[X])
    return rig


def releasing() -> Rig:
    """The turn is over, and the last started fetch is not published."""
    rig = contested()
    rig.here.out = False
    rig.now += TURN_S
    assert not any(message.released for message in rig.send())
    return rig


def released() -> Rig:
    """The release is sent, and the topic has not returned it."""
    rig = releasing()
    rig.here.out = True
    rig.unread = []
    assert [message.released for message in rig.send()] == [[AddressReleased(X, 0.2, True, 1)]]
    return rig


STATES = (unclaimed, wanted, claiming, waiting, held, contested, releasing, released)


# ---- events


def host_waits(rig: Rig) -> None:
    rig.here.lines.add(X)
    rig.lock.want(X)


def no_host_waits(rig: Rig) -> None:
    rig.here.lines.discard(X)


def fetch_ends(rig: Rig) -> None:
    rig.here.flying.pop(X, None)


def turn_ends(rig: Rig) -> None:
    rig.now += TURN_S


def starts_published(rig: Rig) -> None:
    rig.here.out = True


def own_messages_read(rig: Rig) -> None:
    rig.read()


def other_claims(rig: Rig) -> None:
    rig.hear(B, claims=[X])


def other_releases(rig: Rig) -> None:
    rig.hear(B, released=[AddressReleased(X, 0.4, False, 2)])


def other_reports_in_flight(rig: Rig) -> None:
    rig.hear(B, in_flight=[AddressInFlight(X, 3)])


def other_departs(rig: Rig) -> None:
    rig.hear(C, partitions=[PartitionOwned(1, 20)])


def other_is_silent(rig: Rig) -> None:
    rig.pass_time(MEMBER_TIMEOUT_S + 0.25, C)
    rig.changed |= rig.lock.drop_silent(rig.now)


def long_idle(rig: Rig) -> None:
    rig.here.lines.discard(X)
    rig.here.flying.clear()
    rig.here.waits.clear()
    rig.pass_time(IDLE_RELEASE_S)


def taken_for_departed(rig: Rig) -> None:
    rig.hear(C, partitions=[PartitionOwned(0, 20)])


def partition_lost(rig: Rig) -> None:
    rig.lock.disown(0)


EVENTS = (
    host_waits, no_host_waits, fetch_ends, turn_ends, starts_published, own_messages_read, other_claims,
    other_releases, other_reports_in_flight, other_departs, other_is_silent, long_idle, taken_for_departed,
    partition_lost,
)  # fmt: skip
