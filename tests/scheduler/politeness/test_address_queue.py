"""One pace per server address over all hosts; who finds no room waits in line, in order, and nobody starves."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.net.address_pace import AddressPace
from nephila.scheduler.politeness.address_queue import AddressQueue


class Host:
    """What a line needs of a host."""

    def __init__(self, name: str = "", address: str = "a") -> None:
        self.name = name
        self.address = address
        self.line = 0


def made(*entries: str, connections: int = 4, gap_s: float = 0.25) -> AddressQueue[Host]:
    """An empty book of addresses."""
    return AddressQueue(AddressLimits(connections, gap_s, entries))


def test_room_for_the_gap_and_for_the_count() -> None:
    """0 when a fetch may start, the instant while the gap runs, None when only an end helps."""
    addresses = made(connections=2)
    assert addresses.room("a", 10.0) == 0.0
    addresses.start("a", 10.0)
    assert addresses.room("a", 10.1) == 10.25
    assert addresses.room("b", 10.1) == 0.0
    addresses.start("a", 10.25)
    assert addresses.room("a", 99.0) is None
    addresses.end("a", 99.0)
    assert addresses.room("a", 99.0) == 0.0


def test_after_a_restart_the_first_start_is_one_gap_later() -> None:
    """What the program before started is not known; nothing of it is in flight."""
    addresses: AddressQueue[Host] = AddressQueue(AddressLimits(4, 0.25), restarted_at=50.0)
    assert addresses.room("a", 50.0) == 50.25
    addresses.wait("a", Host(), 50.0)
    assert addresses.take(50.2) is None
    assert addresses.take(50.25) is not None


def test_a_line_is_served_in_order_at_the_pace() -> None:
    """A thousand hosts on one address: only the first is looked at, one every gap, in the order of arrival."""
    addresses = made(connections=0)
    hosts = [Host(str(number)) for number in range(1000)]
    for host in hosts:
        addresses.wait("a", host, 0.0)
    served: list[tuple[float, Host]] = []
    looks = 0
    while (due := addresses.next_ready()) is not None:
        looks += 1
        taken = addresses.take(due)
        if taken is not None:
            addresses.start("a", due)
            served.append((due, taken[1]))
    assert [host for _, host in served] == hosts
    assert [at for at, _ in served] == pytest.approx([number * 0.25 for number in range(1000)])
    assert looks <= 2002


def test_who_comes_later_does_not_overtake() -> None:
    """While one waits there is no room for others, even at the instant at which there is room."""
    addresses = made()
    addresses.start("a", 0.0)
    addresses.wait("a", Host("first"), 0.1)
    at = addresses.room("a", 0.25)
    assert at is not None
    assert at > 0.25
    taken = addresses.take(0.25)
    assert taken is not None
    assert addresses.room("a", 0.25, first=True) == 0.0


def test_who_leaves_holds_up_nobody() -> None:
    """A host that has left, or was taken and not served, makes way for the next at once."""
    addresses = made()
    hosts = [Host(name) for name in "xyz"]
    for host in hosts:
        addresses.wait("a", host, 0.0)
    addresses.leave(hosts[0])
    assert addresses.take(0.0) == ("a", hosts[1])
    assert addresses.take(0.0) == ("a", hosts[2])
    assert addresses.take(0.0) is None
    assert addresses.next_ready() is None
    addresses.wait("a", hosts[0], 1.0)
    assert addresses.line("a") == [hosts[0]]
    addresses.check()


def test_one_place_per_host() -> None:
    """Waiting again keeps the place."""
    addresses = made()
    one, two = Host("1"), Host("2")
    for host in (one, two, one):
        addresses.wait("a", host, 0.0)
    assert addresses.line("a") == [one, two]


def test_a_full_address_waits_for_an_end() -> None:
    """With all connections in use the line waits for no time; an end makes its first ready."""
    addresses = made(connections=1, gap_s=0.0)
    addresses.start("a", 0.0)
    host = Host()
    addresses.wait("a", host, 0.0)
    assert addresses.next_ready() is None
    addresses.end("a", 7.0)
    assert addresses.next_ready() == 7.0
    assert addresses.take(7.0) == ("a", host)


def test_what_the_downloader_refuses_is_tried_less_and_less_often() -> None:
    """First contacts hold slots that are not known here: the next tries are 1, 2, 4, 8, 16, 16 gaps away, and the host
    stays first; one good end and the pace is the old one."""
    addresses = made()
    host, other = Host("x"), Host("y")
    addresses.wait("a", host, 0.0)
    addresses.wait("a", other, 0.0)
    waits, now = [], 0.0
    for _ in range(6):
        assert addresses.take(now) == ("a", host)
        addresses.start("a", now)
        addresses.end("a", now, refused=True)
        addresses.wait("a", host, now, head=True)
        assert addresses.take(now) is None
        due = addresses.next_ready()
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0]
    assert addresses.take(now) == ("a", host)
    addresses.start("a", now)
    addresses.end("a", now + 0.1)
    assert addresses.room("a", now + 0.25, first=True) == 0.0


def test_no_limits() -> None:
    """0 is no limit, for the count and for the gap; networks may have their own."""
    addresses = made("10.0.0.0/8=1/5", connections=0, gap_s=0.0)
    for _ in range(100):
        assert addresses.room("192.0.2.1", 1.0) == 0.0
        addresses.start("192.0.2.1", 1.0)
    addresses.start("10.1.1.1", 1.0)
    assert addresses.room("10.1.1.1", 1.0) is None
    addresses.end("10.1.1.1", 2.0)
    assert addresses.room("10.1.1.1", 2.0) == 6.0


def test_what_is_idle_is_forgotten() -> None:
    """A million addresses that were fetched from once cost nothing later; here ten thousand."""
    addresses = made()
    for number in range(10_000):
        now = number * 0.01
        addresses.start(str(number), now)
        addresses.end(str(number), now)
        if number % 3 == 0:
            addresses.wait(str(number), Host(), now)
        addresses.take(now)
    while (due := addresses.next_ready()) is not None:
        addresses.take(due)
    for number in range(200):
        addresses.start("last", 1000.0 + number)
        addresses.end("last", 1000.0 + number)
    assert len(addresses) == 1
    addresses.check()


@pytest.mark.parametrize("seed", range(4))
def test_limits_hold_and_nobody_starves(seed: int) -> None:
    """Any order of arrivals, ends, refusals and departures: count and gap hold on every address, each line is first
    come, first served, and everybody who stays is served in the end."""
    rng = random.Random(seed)
    limits = {"a": (4, 0.25), "b": (4, 0.25), "10.0.0.1": (2, 0.0), "10.0.0.2": (2, 0.0), "10.9.0.1": (0, 1.0)}
    addresses = made("10.0.0.0/24=2/0", "10.9.0.0/16=0/1")
    now = 1.0
    in_flight: list[str] = []
    last = dict.fromkeys(limits, float("-inf"))
    waiting: dict[str, list[Host]] = defaultdict(list)
    served: Counter[str] = Counter()

    def start(address: str) -> None:
        most, gap_s = limits[address]
        assert now >= last[address] + gap_s
        last[address] = now
        in_flight.append(address)
        assert not most or in_flight.count(address) <= most
        addresses.start(address, now)
        served[address] += 1

    def take_all() -> None:
        while (taken := addresses.take(now)) is not None:
            address, host = taken
            assert host is waiting[address].pop(0)
            if rng.random() < 0.9:
                start(address)

    for number in range(5_000):
        now += rng.choice((0.0, 0.01, 0.1, 0.6))
        take_all()
        action = rng.random()
        address = rng.choice(list(limits))
        if action < 0.5:
            room = addresses.room(address, now)
            if room == 0.0:
                assert not waiting[address]
                start(address)
            elif len(waiting[address]) < 50:
                host = Host(str(number), address)
                addresses.wait(address, host, now)
                waiting[address].append(host)
        elif action < 0.9 and in_flight:
            address = in_flight.pop(rng.randrange(len(in_flight)))
            addresses.end(address, now, refused=rng.random() < 0.1)
        elif waiting[address]:
            addresses.leave(waiting[address].pop(rng.randrange(len(waiting[address]))))
        if number % 50 == 0:
            addresses.check()
            assert addresses.waiting() == [host for a in addresses.lined() for host in waiting[a]]
    for _ in range(100_000):
        if not any(waiting.values()):
            break
        now += 0.25
        take_all()
        while in_flight:
            addresses.end(in_flight.pop(), now)
    assert not any(waiting.values())
    assert min(served.values()) > 100
    addresses.check()


def test_times_may_start_at_zero() -> None:
    """A clock that begins at 0 is a clock."""
    addresses = made()
    addresses.start("a", 0.0)
    addresses.wait("a", Host(), 0.0)
    assert addresses.next_ready() == 0.25


def test_the_check_finds_a_queue_that_nobody_looks_at() -> None:
    """A pace that gains room without a word to the queue: `look` was not called."""
    pace = AddressPace(AddressLimits(1, 0.25))
    addresses: AddressQueue[Host] = AddressQueue(AddressLimits(1, 0.25), pace=pace)
    addresses.start("a", 0.0)
    addresses.wait("a", Host(), 0.0)
    addresses.check()
    pace.end("a", 1.0)
    with pytest.raises(AssertionError, match="a has room, and its queue waits for ever"):
        addresses.check()
    addresses.look("a", 1.0)
    addresses.check()
