"""The lock of one scheduler on one address: every event in every state, and what follows after each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from nephila.kernel.messages import AddressAnnouncement, AddressInFlight, AddressReleased, PartitionOwned
from nephila.scheduler.cluster.addresses.address_claims import MEMBER_TIMEOUT_S
from nephila.scheduler.cluster.addresses.address_lock import (
    CLAIMS_PER_MESSAGE,
    HEARTBEAT_S,
    IDLE_RELEASE_S,
    NO_ECHO_S,
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


def observed(rig: Rig) -> str:
    """Held or not, the queue, what the others have in flight, until when nothing starts; what is sent about X."""
    parts = ["held" if rig.lock.held(X) else "-", rig.claims() or "-"]
    if others := rig.lock.others(X):
        parts.append(f"others={others}")
    if X in rig.here.delayed:
        parts.append(f"delayed={rig.here.delayed[X] - rig.now:g}")
    rig.send()
    for message in rig.sent:
        parts += ["restart"] * message.sync_request
        parts += ["claim"] * message.claims.count(X)
        for one in message.released:
            parts.append(f"release({one.in_flight})" + ("+claim" if one.reclaimed else ""))
        parts += [f"flying={one.count}" for one in message.in_flight]
    return " ".join(parts)


EXPECTED = """
host_waits
    unclaimed  - - claim
    wanted     - - claim
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB
    releasing  - AB
    released   - AB
no_host_waits
    unclaimed  - -
    wanted     - - claim
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB release(1)
    releasing  - AB
    released   - AB
fetch_ends
    unclaimed  - -
    wanted     - - claim
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB
    releasing  - AB
    released   - AB flying=0
turn_ends
    unclaimed  - -
    wanted     - - claim
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB release(1)+claim
    releasing  - AB
    released   - AB
starts_published
    unclaimed  - -
    wanted     - - claim
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB
    releasing  - AB release(1)+claim
    released   - AB
own_messages_read
    unclaimed  - -
    wanted     - - claim
    claiming   held A
    waiting    - BA
    held       held A
    contested  held AB
    releasing  - AB
    released   - BA
other_claims
    unclaimed  - B
    wanted     - B claim
    claiming   - B
    waiting    - BA
    held       held AB
    contested  held AB
    releasing  - AB
    released   - AB
other_releases
    unclaimed  - - others=2
    wanted     - - others=2 claim
    claiming   - - others=2
    waiting    held A others=2 delayed=0.4
    held       held A others=2
    contested  held A others=2
    releasing  - A others=2
    released   - A others=2
other_reports_in_flight
    unclaimed  - - others=3
    wanted     - - others=3 claim
    claiming   - - others=3
    waiting    - BA others=3
    held       held A others=3
    contested  held AB others=3
    releasing  - AB others=3
    released   - AB others=3
other_departs
    unclaimed  - -
    wanted     - - claim
    claiming   - -
    waiting    held A delayed=0.25
    held       held A
    contested  held A
    releasing  - A
    released   - A
other_is_silent
    unclaimed  - -
    wanted     held A claim
    claiming   held A
    waiting    held A delayed=0.25
    held       held A
    contested  held A delayed=0.25 release(1)+claim flying=0
    releasing  - A
    released   held A delayed=0.25 flying=0
long_idle
    unclaimed  - -
    wanted     held A claim
    claiming   held A
    waiting    - BA
    held       - - release(0)
    contested  - B release(0)
    releasing  - AB
    released   - BA flying=0
taken_for_departed
    unclaimed  - - restart
    wanted     - - restart
    claiming   - - restart
    waiting    - B restart
    held       - - delayed=0.25 restart
    contested  - B delayed=0.25 restart
    releasing  - B delayed=0.25 restart
    released   - B delayed=0.25 restart
partition_lost
    unclaimed  - -
    wanted     - -
    claiming   - -
    waiting    - BA
    held       held A
    contested  held AB
    releasing  - AB
    released   - AB
"""


def expected() -> dict[str, dict[str, str]]:
    """Event → state → what is observed."""
    found: dict[str, dict[str, str]] = {}
    for line in EXPECTED.strip().splitlines():
        if line[0] != " ":
            rows = found[line] = {}
        else:
            state, text = line.split(maxsplit=1)
            rows[state] = text
    return found


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_every_event_in_every_state_of_an_address(event: Callable[[Rig], None]) -> None:
    """The table above is complete: an event in a state has one result."""
    found = {}
    for state in STATES:
        rig = state()
        rig.sent.clear()
        rig.here.delayed.clear()
        event(rig)
        found[state.__name__] = observed(rig)
    assert found == expected()[event.__name__]


# ---- sequences


def test_a_released_address_is_held_again_only_after_the_release_was_read() -> None:
    """The other member is gone from the queue before the topic returns the release: until then nothing starts."""
    rig = released()
    rig.hear(B, released=[AddressReleased(X, 0.0, False, 0)])
    assert (rig.claims(), rig.lock.held(X), rig.lock.held_count) == ("A", False, 0)
    rig.read()
    assert (rig.claims(), rig.lock.held(X), rig.lock.held_count) == ("A", True, 1)
    assert X in rig.changed


def test_members_that_claim_in_turn_hold_in_turn() -> None:
    """Each turn begins at its own time, and a turn without a start lasts four times as long."""
    rig = contested()
    rig.now += TURN_S - 0.25
    assert not any(message.released for message in rig.send())
    rig.now += 0.25
    assert [one.address for message in rig.send() for one in message.released] == [X]
    rig.read()
    rig.now += 20.0
    assert (rig.claims(), rig.lock.held(X)) == ("BA", False)
    rig.hear(B, released=[AddressReleased(X, 0.4, True, 0)])
    assert (rig.claims(), rig.lock.held(X)) == ("AB", True)
    assert rig.here.delayed[X] == pytest.approx(rig.now + 0.4)
    rig.now += 4 * TURN_S - 0.25
    assert not any(message.released for message in rig.send())
    rig.now += 0.25
    assert [one.address for message in rig.send() for one in message.released] == [X]


def test_an_address_with_a_waiting_host_or_an_open_gap_is_not_idle() -> None:
    """It is looked at again a minute later; a use in between counts."""
    rig = held()
    rig.pass_time(2 * IDLE_RELEASE_S)
    assert rig.lock.held(X)
    rig.here.lines.clear()
    rig.here.waits[X] = 90.0
    rig.pass_time(2 * IDLE_RELEASE_S)
    assert rig.lock.held(X)
    rig.here.waits.clear()
    rig.lock.record_use(X, rig.now)
    rig.pass_time(IDLE_RELEASE_S - HEARTBEAT_S)
    assert rig.lock.held(X)
    rig.pass_time(HEARTBEAT_S)
    assert (rig.lock.held(X), rig.claims()) == (False, "")


def test_idle_addresses_are_found_behind_one_that_is_used() -> None:
    """The least recently used stands in front."""
    rig = joined()
    rig.here.lines = {"192.0.2.8", "192.0.2.9"}
    for address in ("192.0.2.8", "192.0.2.9"):
        rig.lock.want(address)
    rig.send()
    rig.read()
    rig.here.lines = set()
    rig.pass_time(IDLE_RELEASE_S / 2)
    rig.lock.record_use("192.0.2.8", rig.now)
    rig.pass_time(IDLE_RELEASE_S / 2)
    assert (rig.lock.held("192.0.2.8"), rig.lock.held("192.0.2.9")) == (True, False)


def test_an_owner_that_was_taken_for_departed_returns_as_a_new_member() -> None:
    """It asks all for their claims, and claims what its hosts wait for, at the end of the queue."""
    rig = contested()
    rig.here.flying["192.0.2.7"] = 2
    taken_for_departed(rig)
    assert not rig.lock.synced
    assert not rig.lock.is_announced(0, 10)
    assert rig.lock.is_superseded(0, 10)
    rig.lock.disown(0)
    rig.lock.own(0, 30)
    assert rig.lock.me > A
    (message,) = rig.send()
    assert (message.sync_request, message.partitions) == (True, [PartitionOwned(0, 30)])
    assert {one.address: one.count for one in message.in_flight} == {X: 1, "192.0.2.7": 2}
    assert rig.send() == []
    rig.read()
    rig.hear(B, claims=[X], partitions=[PartitionOwned(1, 10)])
    assert (rig.lock.synced, rig.claims(), rig.send()) == (False, "B", [])
    rig.hear(C, partitions=[PartitionOwned(2, 10)])
    assert rig.lock.synced
    assert rig.lock.is_announced(0, 30)
    rig.send()
    rig.read()
    assert (rig.claims(), rig.lock.held(X)) == ("BA", False)
    rig.lock.table.check([B, C, rig.lock.me])


def test_a_member_whose_messages_do_not_return_becomes_a_new_member() -> None:
    """The others may have removed it: it comes back before they can."""
    rig = held()
    rig.now += NO_ECHO_S
    rig.send()
    assert rig.lock.me == A
    rig.now += 0.1
    assert any(message.sync_request for message in rig.send())
    assert rig.lock.me == ("a", 2)
    assert not rig.lock.held(X)
    assert NO_ECHO_S < MEMBER_TIMEOUT_S


def test_a_member_that_does_not_announce_itself_is_not_waited_for_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    """After MEMBER_TIMEOUT_S the claims of the others count without it, and a line says so."""
    rig = joined(unannounced=(C,))
    host_waits(rig)
    rig.pass_time(MEMBER_TIMEOUT_S - 0.25)
    assert not rig.lock.synced
    assert not any(message.claims for message in rig.sent)
    rig.now += 0.25
    rig.hear(B)
    assert rig.lock.synced
    assert "no scheduler that announces" in caplog.text
    assert [message.claims for message in rig.send()] == [[X]]
    assert rig.lock.me == A


def test_a_request_for_announcements_is_answered_completely() -> None:
    """All claims in pieces, then partitions and fetches in flight in one message: it completes the announcement."""
    rig = joined()
    many = [f"10.0.{number // 250}.{number % 250}" for number in range(CLAIMS_PER_MESSAGE + 1)]
    rig.here.lines.update(many)
    for address in many:
        rig.lock.want(address)
    rig.send()
    rig.read()
    rig.here.flying = {"192.0.2.7": 2, many[0]: 1}
    rig.hear(("c", 2), sync_request=True, partitions=[PartitionOwned(2, 20)])
    assert rig.lock.has_pending
    *pieces, last = rig.send()
    assert [len(piece.claims) for piece in pieces] == [CLAIMS_PER_MESSAGE, 1]
    assert [address for piece in pieces for address in piece.claims] == many
    assert not any(piece.partitions for piece in pieces)
    assert last.partitions == [PartitionOwned(0, 10)]
    assert last.in_flight == [AddressInFlight("192.0.2.7", 2)]
    rig.read()
    assert rig.send() == []


def test_a_member_without_partitions_answers_nothing() -> None:
    """It has left the group; its next partition makes it a new member."""
    rig = held()
    rig.lock.disown(0)
    rig.hear(("c", 2), sync_request=True, partitions=[PartitionOwned(2, 20)])
    assert (rig.lock.has_pending, rig.send()) == (False, [])
    rig.lock.own(0, 30)
    assert rig.lock.me == ("a", 2)
    assert not rig.lock.held(X)


def test_fetches_in_flight_are_reported_until_they_end() -> None:
    """With each change of their number, while another member may hold the address."""
    rig = contested()
    rig.here.flying[X] = 3
    rig.now += TURN_S
    reported = [one.in_flight for message in rig.send() for one in message.released]
    rig.read()
    for count in (3, 2, 2, 0, 0):
        rig.here.flying[X] = count
        reported += [one.count for message in rig.send() for one in message.in_flight]
        rig.read()
    assert reported == [3, 2, 0]
    assert not rig.lock.has_pending


def test_a_heartbeat_is_sent_only_after_silence() -> None:
    """A message without contents, HEARTBEAT_S after the last one."""
    rig = joined()
    assert not rig.lock.has_pending
    rig.now += HEARTBEAT_S - 0.1
    assert rig.send() == []
    rig.now += 0.1
    assert rig.send() == [AddressAnnouncement(*A)]
    assert rig.send() == []


def test_a_scheduler_that_is_alone_holds_everything_and_hands_over_what_it_uses() -> None:
    """A member that joins finds all addresses in use claimed; when it departs, the claims are forgotten."""
    rig = Rig(partitions=2)
    rig.lock.own(0, 10)
    rig.lock.own(1, 11)
    rig.send()
    rig.read()
    assert rig.lock.synced
    assert rig.lock.held(X)
    rig.lock.want(X)
    assert (rig.lock.has_pending, rig.lock.held_count, rig.claims()) == (False, 0, "")
    rig.here.lines.add(X)
    rig.here.flying["192.0.2.7"] = 1
    rig.lock.disown(1)
    rig.hear(B, sync_request=True, partitions=[PartitionOwned(1, 20)])
    assert (rig.lock.held(X), rig.lock.held("192.0.2.7"), rig.lock.held("192.0.2.99")) == (True, True, False)
    assert rig.claims() == "A"
    claims, last = rig.send()
    assert (sorted(claims.claims), last.partitions) == ([X, "192.0.2.7"], [PartitionOwned(0, 10)])
    rig.read()
    rig.hear(B, claims=[X])
    assert rig.claims() == "AB"
    rig.changed.clear()
    rig.lock.own(1, 30)
    rig.send()
    rig.read()
    assert rig.lock.held("192.0.2.99")
    assert (rig.claims(), rig.lock.held_count) == ("", 0)
    assert rig.changed >= {X, "192.0.2.7"}


def test_a_partition_of_a_departed_later_owner_is_announced_again() -> None:
    """The log that numbers epochs may have been created again, so its epochs are lower than those of a member that is
    gone."""
    rig = joined()
    rig.hear(C, partitions=[PartitionOwned(0, 99)])
    rig.lock.disown(0)
    rig.lock.own(0, 40)
    rig.send()
    rig.read()
    rig.hear(B, partitions=[PartitionOwned(1, 10)])
    assert (rig.lock.is_announced(0, 40), rig.lock.is_superseded(0, 40)) == (False, True)
    rig.pass_time(MEMBER_TIMEOUT_S + 0.25, B)
    assert (rig.lock.is_announced(0, 40), rig.lock.is_superseded(0, 40)) == (False, True)
    assert rig.lock.drop_silent(rig.now) == set()
    rig.send()
    rig.read()
    assert (rig.lock.is_announced(0, 40), rig.lock.is_superseded(0, 40)) == (True, False)
