"""The lock of one scheduler on one address: sequences of events."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import AddressAnnouncement, AddressInFlight, AddressReleased, PartitionOwned
from nephila_cluster.scheduler.addresses.address_claims import MEMBER_TIMEOUT_S
from nephila_cluster.scheduler.addresses.address_lock import (
    CLAIMS_PER_MESSAGE,
    HEARTBEAT_S,
    IDLE_RELEASE_S,
    NO_ECHO_S,
    TURN_S,
)

from tests.cluster.scheduler.addresses.address_lock_rig import (
    A,
    B,
    C,
    Rig,
    X,
    contested,
    held,
    host_waits,
    joined,
    released,
    taken_for_departed,
)


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
