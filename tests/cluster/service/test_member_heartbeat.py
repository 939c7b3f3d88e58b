"""The status of a member on the topic `members`: what it says, how often, and what happens while the broker is away."""

from __future__ import annotations

from typing import Any

import pytest
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.messages import MemberState, MemberStatus, RefusingHost
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.metrics import Metric
from nephila.kernel.topics import MEMBERS
from nephila_cluster.service.member_heartbeat import INTERVAL_S, MemberHeartbeat, counters_of, local_address


class Bus:
    """Keeps what is published; a receipt resolves while `answers`."""

    member = "parser-0"
    unacked = 7

    def __init__(self) -> None:
        self.statuses: list[MemberStatus] = []
        self.receipts: list[Receipt] = []
        self.answers = True

    def held(self, group: str) -> frozenset[int]:
        """See `MemberBus`."""
        return frozenset({9, 2}) if group == "parser" else frozenset()

    def publish(self, topic: Any, partition: int, message: MemberStatus) -> Receipt:
        """See `MemberBus`."""
        assert (topic, partition) == (MEMBERS, 0)
        self.statuses.append(message)
        self.receipts.append(Receipt(0 if self.answers else 1))
        return self.receipts[-1]


class Parser:
    """A service with counters."""

    def __init__(self) -> None:
        self.pages = 0
        self.errors: dict[str, int] = {}


@pytest.fixture
def rig():
    """(bus, clock, service, heartbeat, its state as a list of one)."""
    bus, clock, service = Bus(), ManualClock(), Parser()
    metrics = [
        Metric("pages_total", "Pages.", lambda s: s.pages, counter=True),
        Metric("errors_total", "Errors.", lambda s: s.errors, "reason", counter=True),
        Metric("waiting", "A gauge.", lambda s: 5),
    ]
    state = [(MemberState.READY, "")]
    heartbeat = MemberHeartbeat(
        "parser", bus, clock, counters_of(service, metrics), lambda: state[0], work=lambda: (service.pages, 5000)
    )
    return bus, clock, service, heartbeat, state


def test_a_status_names_the_member_its_partitions_and_rates(rig):
    """Counters per second since the status before; labels are summed, gauges left out."""
    bus, clock, service, heartbeat, _ = rig
    heartbeat.start()
    service.pages, service.errors = 50, {"a": 5, "b": 10}
    clock.advance(INTERVAL_S)
    first, second = bus.statuses
    assert (first.id, first.service, first.member) == ("parser/parser-0", "parser", "parser-0")
    assert (first.partitions, first.in_flight, first.state) == ([2, 9], 7, MemberState.READY)
    assert {rate.name: rate.per_s for rate in first.rates} == {"pages": 0, "errors": 0}
    assert {rate.name: rate.per_s for rate in second.rates} == {"pages": 10, "errors": 3}
    assert second.at - first.at == pytest.approx(INTERVAL_S)
    assert second.started_at == first.started_at
    assert second.memory_bytes > 0


def test_a_status_has_the_disk_and_the_hosts_that_refuse(rig):
    bus, clock, _, _, state = rig
    refusing = [RefusingHost("a.test", 5.0, 7)]
    heartbeat = MemberHeartbeat(
        "parser", bus, clock, dict, lambda: state[0], disk=lambda: (10, 100), refusing=lambda: refusing
    )
    heartbeat.start()
    (status,) = bus.statuses
    assert (status.disk_free_bytes, status.disk_size_bytes, status.refusing_hosts) == (10, 100, refusing)


def test_statuses_do_not_pile_up_while_the_broker_is_away(rig):
    """One waits for its receipt, and the next is published after it has come."""
    bus, clock, _, heartbeat, _ = rig
    bus.answers = False
    heartbeat.start()
    for _ in range(5):
        clock.advance(INTERVAL_S)
    assert len(bus.statuses) == 1
    bus.receipts[0].resolve_one()
    clock.advance(INTERVAL_S)
    assert len(bus.statuses) == 2


def test_the_state_of_the_moment_is_published_and_the_end_is_the_last(rig):
    """After the end no timer publishes."""
    bus, clock, _, heartbeat, state = rig
    heartbeat.start()
    state[0] = (MemberState.NOT_READY, "no database answers")
    clock.advance(INTERVAL_S)
    heartbeat.end()
    clock.advance(3 * INTERVAL_S)
    assert [one.state for one in bus.statuses] == [MemberState.READY, MemberState.NOT_READY, MemberState.ENDED]
    assert bus.statuses[1].problem == "no database answers"


def test_a_program_that_never_reached_its_broker_says_nothing_at_its_end(rig):
    """It was no member."""
    bus, _, _, heartbeat, _ = rig
    heartbeat.end()
    assert bus.statuses == []


@pytest.mark.parametrize(
    ("peer", "address"), [("127.0.0.1:9092", "127.0.0.1"), ("nonsense", ""), ("no.such.name.invalid:1", "")]
)
def test_the_address_of_a_member_is_that_on_the_way_to_its_broker(peer, address):
    """Without a message to it; empty where there is no way."""
    assert local_address(peer) == address


def test_pages_and_bytes_are_those_since_the_start(rig):
    bus, clock, service, heartbeat, _ = rig
    heartbeat.start()
    service.pages = 40
    clock.advance(INTERVAL_S)
    service.pages = 100
    clock.advance(INTERVAL_S)
    assert [(one.pages, one.bytes) for one in bus.statuses] == [(0, 5000), (40, 5000), (100, 5000)]
