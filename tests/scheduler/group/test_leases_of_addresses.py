"""An address belongs to one group at a time, each group that waits gets it, and its gap is kept between groups."""

from __future__ import annotations

import random

import pytest
from nephila.kernel.net.address_limits import AddressLimits
from nephila.scheduler.frontier.host_state import QueueSlot
from nephila.scheduler.group.address_leases import HELD, AddressLeases, Grant, Recall
from nephila.scheduler.group.held_addresses import HeldAddresses, LeasedAddresses

GAP_S, AT_ONCE = 1.0, 2
ADDRESSES = ("10.0.0.1", "10.0.0.2")
LIMITS = AddressLimits(AT_ONCE, GAP_S, (), "test")


class Group:
    """One group with hosts that wait for addresses, and the messages on the way to it."""

    def __init__(self, number: int, web: Web) -> None:
        self.number = number
        self.web = web
        self.inbox: list[Grant | Recall] = []
        self.flying: list[str] = []
        self.held = HeldAddresses(self._want, self._release)
        self.table = LeasedAddresses(LIMITS, float("-inf"), self.held)

    def _want(self, address: str) -> None:
        self.web.outbox.append((self, "want", address, 0.0))

    def _release(self, address: str, free_at: float) -> None:
        self.web.outbox.append((self, "release", address, free_at))

    def add_host(self, address: str) -> None:
        self.table.wait(address, QueueSlot(0), self.web.now)
        self.table.want(address)
        self.web.waiting += 1

    def read(self) -> None:
        message = self.inbox.pop(0)
        if isinstance(message, Grant):
            self.table.granted(message.address, message.not_before, self.web.now)
        else:
            self.held.recall(message.address)
            self.held.return_unused(self.table, self.web.now)

    def start(self) -> None:
        taken = self.table.take(self.web.now)
        if taken is not None:
            self.table.start(taken[0], self.web.now)
            self.flying.append(taken[0])
            self.web.started(taken[0])

    def end(self) -> None:
        if self.flying:
            address = self.flying.pop(0)
            self.table.end(address, self.web.now)
            self.web.flying[address] -= 1
        self.held.return_unused(self.table, self.web.now)


class Web:
    """Groups, the main process between them, and the servers, which check the pace."""

    def __init__(self, groups: int) -> None:
        self.now = 0.0
        self.outbox: list[tuple[Group, str, str, float]] = []
        self.leases = AddressLeases(LIMITS)
        self.groups = [Group(number, self) for number in range(groups)]
        self.flying = dict.fromkeys(ADDRESSES, 0)
        self.last = dict.fromkeys(ADDRESSES, float("-inf"))
        self.waiting = 0
        self.starts = 0

    def started(self, address: str) -> None:
        assert self.now >= self.last[address] + GAP_S, "two starts within the gap"
        self.last[address] = self.now
        self.flying[address] += 1
        assert self.flying[address] <= AT_ONCE
        assert sum(address in group.flying for group in self.groups) == 1, "two groups on one address"
        self.starts += 1

    def main(self) -> None:
        """The main process reads one message."""
        group, kind, address, free_at = self.outbox.pop(0)
        if kind == "release":
            messages = self.leases.release(address, free_at)
        else:
            messages = [answer] if (answer := self.leases.want(group.number, address)) is not None else []
        self.send(messages)

    def send(self, messages: list[Grant | Recall]) -> None:
        for message in messages:
            self.groups[message.group].inbox.append(message)
        self.leases.check()

    def kill(self, number: int) -> None:
        """The group dies; main has read all that it sent, and its hosts wait again in a new process."""
        while self.outbox:
            self.main()
        group = self.groups[number]
        for address in group.flying:
            self.flying[address] -= 1
        hosts = [address for address in ADDRESSES for _ in self.table_of(group, address)]
        self.groups[number] = Group(number, self)
        self.send(self.leases.lost(number, self.now))
        self.waiting -= len(hosts)
        for address in hosts:
            self.groups[number].add_host(address)

    @staticmethod
    def table_of(group: Group, address: str) -> list[QueueSlot]:
        return group.table.line(address)


@pytest.mark.parametrize("seed", range(20))
def test_groups_share_addresses_in_any_order_of_events(seed):
    rng = random.Random(seed)
    web = Web(3)
    for _ in range(1500):
        web.now += rng.choice((0.0, 0.05, 0.3))
        group = rng.choice(web.groups)
        event = rng.randrange(8)
        if event == 0 and web.waiting < 400:
            group.add_host(rng.choice(ADDRESSES))
        elif event in (1, 2) and web.outbox:
            web.main()
        elif event in (3, 4) and group.inbox:
            group.read()
        elif event == 5:
            group.start()
        elif event == 6:
            group.end()
        elif event == 7 and rng.random() < 0.02:
            web.kill(group.number)
    for _ in range(60 * web.waiting):
        web.now += 0.3
        while web.outbox:
            web.main()
        for group in web.groups:
            while group.inbox:
                group.read()
            group.start()
            group.end()
    assert web.starts == web.waiting, "a host waits for ever"


def test_an_address_is_kept_while_no_other_group_wants_it():
    web = Web(2)
    first = web.groups[0]
    first.add_host(ADDRESSES[0])
    web.main()
    first.read()
    first.start()
    first.end()
    assert web.starts == 1
    first.add_host(ADDRESSES[0])
    assert not web.outbox, "no message for each fetch"


def test_the_gap_of_a_dead_group_counts_for_one_that_comes_later():
    """Nobody has waited for the address when its group died."""
    leases, now = AddressLeases(LIMITS), 50.0
    assert leases.want(0, ADDRESSES[0]) == Grant(0, ADDRESSES[0], 0.0)
    leases.lost(0, now)
    assert leases.want(1, ADDRESSES[0]) == Grant(1, ADDRESSES[0], now + GAP_S)
    assert leases.release(ADDRESSES[0], 70.0) == []
    assert leases.want(2, ADDRESSES[0]) == Grant(2, ADDRESSES[0], 70.0)
    leases.check()


def test_only_so_many_gaps_of_free_addresses_are_kept():
    leases = AddressLeases(LIMITS)
    for number in range(2 * HELD):
        leases.want(0, str(number))
        leases.release(str(number), float(number))
    assert leases.want(1, str(2 * HELD - 1)) == Grant(1, str(2 * HELD - 1), 2 * HELD - 1.0)
    assert leases.want(1, "0") == Grant(1, "0", 0.0)
    leases.check()
