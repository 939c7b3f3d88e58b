"""Count and gap per server address; a request without a slot is given back at once."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from nephila.downloader.limits.address_slots import TOLERANCE_S, AddressSlots
from nephila.kernel import messages as m
from nephila.kernel.documents.job_schema import Politeness
from nephila.kernel.messages import FetchKind, FetchResult
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import JOBS
from nephila.scheduler.politeness.address_queue import AddressQueue

from tests.downloader.downloader_room import Room, answer
from tests.jobs import crawl_job


async def room_of(**settings: object) -> Room:
    """A downloader that takes requests."""
    room = Room(**settings)
    await room.downloader.start()
    return room


def given_back(room: Room) -> list[m.FetchOutcome]:
    """What went back for want of a slot."""
    return [outcome for outcome in room.outcomes if outcome.reason == "busy"]


async def test_what_finds_no_slot_goes_back_with_its_address() -> None:
    """Hosts that share an address share its connections; the others go back undialled, and say which address it is."""
    room = await room_of(per_address=2)
    for number in range(5):
        room.request(f"http://h{number}.test/")
    await room.settle()
    assert len(room.fetcher.fetches) == 2
    assert [(o.result, o.address, o.started_at) for o in room.outcomes] == [(FetchResult.UNSPECIFIED, "8.8.8.8", 0)] * 3
    assert room.downloader.in_flight == 2
    room.reply(0, answer(200))
    room.request("http://h9.test/")
    await room.settle()
    assert room.fetcher.urls[-1] == "http://h9.test/"


async def test_one_gap_is_waited_for() -> None:
    """A wait of one gap is accepted, two are too long: the third request is given back."""
    room = await room_of(address_gap_s=0.25)
    began = room.clock.monotonic()
    for number in range(3):
        room.request(f"http://h{number}.test/")
    await room.settle()
    assert (len(room.fetcher.fetches), len(given_back(room)), room.downloader.in_flight) == (1, 1, 2)
    room.clock.advance(0.249)
    assert len(room.fetcher.fetches) == 1
    room.clock.advance(0.001)
    assert len(room.fetcher.fetches) == 2
    assert room.clock.monotonic() - began == pytest.approx(0.25)


async def test_a_start_that_was_planned_a_little_early_waits() -> None:
    """The way from the scheduler takes its time: up to 50 ms beyond one gap are waited for, more is not."""
    room = await room_of(address_gap_s=0.25)
    for number in range(2):
        room.request(f"http://h{number}.test/")
    await room.settle()
    room.clock.advance(0.25 - TOLERANCE_S - 0.01)
    room.request("http://early.test/")
    await room.settle()
    assert len(given_back(room)) == 1
    room.clock.advance(0.02)
    room.request("http://planned.test/")
    await room.settle()
    assert len(given_back(room)) == 1
    room.clock.advance(0.5)
    assert [url.split("/")[2] for url in room.fetcher.urls] == ["h0.test", "h1.test", "planned.test"]


async def test_waiting_requests_end_like_all_others() -> None:
    """A request that waits for the gap is given back in a drain, and expires after its start_by."""
    room = await room_of(address_gap_s=30.0)
    room.request("http://a.test/")
    room.request("http://b.test/", start_by=room.clock.now() + 20)
    await room.settle()
    room.clock.advance(31.0)
    assert [outcome.result for outcome in room.outcomes] == [FetchResult.EXPIRED]
    room.request("http://c.test/")
    await room.settle()
    assert room.downloader.in_flight == 2
    await room.downloader.drain(0.0)
    room.clock.advance(100.0)
    assert len(room.fetcher.fetches) == 1
    assert (room.downloader.in_flight, room.bus.unacked) == (0, 0)


async def test_no_place_is_held_by_what_goes_back() -> None:
    """A request without a slot leaves its place, and its host, to others."""
    room = await room_of(per_address=1, concurrency=2)
    room.request("http://a.test/")
    room.request("http://b.test/")
    room.address = "9.9.9.9"
    room.request("http://c.test/")
    await room.settle()
    assert room.fetcher.urls == ["http://a.test/", "http://c.test/"]


async def test_networks_have_limits_of_their_own() -> None:
    """The longest prefix counts, for connections and gap."""
    room = await room_of(address_gap_s=1.0, networks=("8.8.0.0/16=9/0", "8.8.8.0/24=2/0"))
    for number in range(4):
        room.request(f"http://h{number}.test/")
    room.address = "8.8.9.9"
    for number in range(4):
        room.request(f"http://k{number}.test/")
    await room.settle()
    assert Counter(url[7] for url in room.fetcher.urls) == {"h": 2, "k": 4}


async def test_jobs_without_delay_are_not_paced() -> None:
    """A job with delay 0 passes; robots.txt as well while there is no other job; a deleted job counts for nothing."""
    room = await room_of(per_address=1, address_gap_s=1.0)
    room.bus.publish(JOBS, 0, crawl_job("fast", politeness=Politeness(delay="0")))
    for number in range(5):
        room.request(f"http://h{number}.test/", job="fast")
        room.request(f"http://r{number}.test/robots.txt", job="", kind=FetchKind.ROBOTS)
    await room.settle()
    assert len(room.fetcher.fetches) == 10
    room.bus.publish(JOBS, 0, crawl_job("slow", politeness=Politeness(delay="1s")))
    for number in range(3):
        room.request(f"http://q{number}.test/robots.txt", job="", kind=FetchKind.ROBOTS)
        room.request(f"http://s{number}.test/", job="slow")
    await room.settle()
    assert (len(room.fetcher.fetches), len(given_back(room))) == (11, 5)
    room.bus.publish(JOBS, 0, m.CrawlJob("slow", deleted=True))
    room.request("http://z.test/robots.txt", job="", kind=FetchKind.ROBOTS)
    await room.settle()
    assert len(room.fetcher.fetches) == 12


async def test_robots_that_moves_waits_for_the_address_it_moves_to() -> None:
    """A redirected robots.txt is not given back: its server has been fetched from. The outcome names the host's own
    address, not that of the hop."""
    room = await room_of(per_address=1)
    room.address = "9.9.9.9"
    room.request("http://other.test/")
    room.address = "8.8.8.8"
    room.request("http://a.test/robots.txt", job="", kind=FetchKind.ROBOTS)
    await room.settle()
    room.reply(
        room.fetcher.urls.index("http://a.test/robots.txt"), answer(301, location="http://other.test/robots.txt")
    )
    await room.settle()
    assert (len(room.fetcher.fetches), given_back(room)) == (2, [])
    room.reply(room.fetcher.urls.index("http://other.test/"), answer(200))
    assert room.fetcher.urls[-1] == "http://other.test/robots.txt"
    last = answer(200, b"User-agent: *")
    last.address = "9.9.9.9"
    room.reply(2, last)
    assert (room.outcomes[-1].address, room.outcomes[-1].body) == ("8.8.8.8", b"User-agent: *")
    assert room.downloader.in_flight == 0


class Planner:
    """A scheduler reduced to addresses: new hosts are sent at once, given-back ones wait for their address."""

    def __init__(self, room: Room, hosts: int, took_s: float) -> None:
        self.room = room
        self.lines: AddressQueue[PlannedHost] = AddressQueue(AddressLimits(4, 0.25))
        self.new = [PlannedHost(f"http://h{number}.test/") for number in reversed(range(hosts))]
        self.hosts = {host.url: host for host in self.new}
        self.took_s = took_s
        self.in_flight = 0
        self.starts: list[float] = []
        self.spans: list[tuple[float, int]] = []

    def turn(self) -> None:
        """Send what may be sent, to at most a hundred at once."""
        now = self.room.clock.monotonic()
        while self.in_flight < 100 and (taken := self.lines.take(now)) is not None:
            address, host = taken
            host.planned = address
            self.lines.start(address, now)
            self.send(host)
        while self.in_flight < 100 and self.new:
            self.send(self.new.pop())
        self.lines.check()

    def send(self, host: PlannedHost) -> None:
        """One request."""
        self.in_flight += 1
        host.sent += 1
        self.room.request(host.url, url_key=host.url.encode())

    async def run(self) -> None:
        """Until every host has been fetched from."""
        while len(self.starts) < len(self.hosts) or self.in_flight:
            self.turn()
            await self.room.settle()
            self.answer()
            if self.room.outcomes:
                self.take_outcomes()
                continue
            due = [at for at in (self.lines.next_ready(), self.room.clock.next_due) if at is not None]
            self.room.clock.advance(max(0.0, min(due, default=0.0) - self.room.clock.monotonic()))

    def answer(self) -> None:
        """Every fetch that has begun ends `took_s` later."""
        clock = self.room.clock
        for number in range(len(self.starts), len(self.room.fetcher.fetches)):
            self.starts.append(clock.monotonic())
            self.spans += [(clock.monotonic(), 1), (clock.monotonic() + self.took_s, -1)]
            clock.call_at(clock.monotonic() + self.took_s, lambda number=number: self.room.reply(number, answer(200)))

    def take_outcomes(self) -> None:
        """What comes back goes to the line of its address, at its head when it comes from there."""
        now = self.room.clock.monotonic()
        for outcome in self.room.outcomes:
            self.in_flight -= 1
            host = self.hosts[outcome.url_key.decode()]
            planned, host.planned = host.planned, ""
            busy = outcome.reason == "busy"
            if planned:
                self.lines.end(planned, now, refused=busy)
            if busy:
                self.lines.wait(outcome.address, host, now, head=bool(planned))
        self.room.outcomes.clear()


class PlannedHost:
    """A host with one URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.line = 0
        self.planned = ""
        self.sent = 0


@pytest.mark.parametrize("took_s", [0.1, 3.0])
async def test_a_thousand_new_hosts_on_one_address_do_not_spin(took_s: float) -> None:
    """Each is given back about once, and then fetched in its turn, at the pace of the address; no request more."""
    room = await room_of(address_gap_s=0.25, window=10_000)
    planner = Planner(room, 1000, took_s)
    began = room.clock.monotonic()
    await planner.run()
    assert len(set(room.fetcher.urls)) == len(room.fetcher.urls) == 1000
    assert min(after - before for before, after in itertools.pairwise(planner.starts)) >= 0.25 - 1e-6
    at_once = itertools.accumulate(change for _, change in sorted(planner.spans, key=lambda span: (span[0], span[1])))
    assert max(at_once) <= 4
    pace_s = max(0.25, took_s / 4)
    assert room.clock.monotonic() - began <= 1000 * pace_s * 1.1
    sent = [host.sent for host in planner.hosts.values()]
    assert sum(sent) <= 2.05 * 1000
    assert max(sent) <= 8


def test_limits_hold_under_random_use() -> None:
    """Count and gap hold, who waits is served in order, nothing is remembered of what is idle, in any order of takes,
    ends and withdrawals."""
    rng = random.Random(5)
    slots: AddressSlots[int] = AddressSlots(AddressLimits(2, 0.25, ["10.0.0.0/8=3/0"]))
    limits = {"a": (2, 0.25), "10.1.2.3": (3, 0.0)}
    now = 0.0
    held: list[str] = []
    waiting: dict[str, list[int]] = {address: [] for address in limits}
    last = dict.fromkeys(limits, float("-inf"))

    def started(address: str, at: float) -> None:
        assert at >= max(now, last[address] + limits[address][1])
        last[address] = at
        held.append(address)
        assert held.count(address) <= limits[address][0]

    for number in range(20_000):
        now += rng.choice((0.0, 0.01, 0.3))
        address = rng.choice(list(limits))
        action = rng.random()
        if action < 0.5:
            if rng.random() < 0.5 and slots.refuses(address, now):
                continue
            at = slots.acquire(address, number, now)
            if at is None:
                waiting[address].append(number)
            else:
                started(address, at)
        elif action < 0.9 and address in held:
            held.remove(address)
            following = slots.release(address, now)
            if waiting[address]:
                assert following is not None
                assert following[0] == waiting[address].pop(0)
                started(address, following[1])
        elif waiting[address]:
            assert slots.cancel(address, waiting[address].pop(rng.randrange(len(waiting[address]))))
        slots.check()
    assert not slots.cancel("a", -1)
    while held:
        address = held.pop()
        following = slots.release(address, now)
        if following is not None:
            held.append(address)
    for other in ("x", "y"):
        slots.acquire(other, 0, now + 9)
        slots.release(other, now + 9)
    slots.check()
    assert len(slots) <= 2


@pytest.mark.parametrize("bad", ["10.0.0.0/8", "10.0.0.0/8=4", "10.0.0.0/8=x/1"])
def test_bad_networks_are_told_at_the_start(bad: str) -> None:
    """One line that names the entry, before anything is fetched."""
    with pytest.raises(UsageError, match=r"downloader\.limits\.networks: '10") as error:
        Room(networks=(bad,))
    assert "\n" not in str(error.value)


async def unwritten() -> Room:
    """Two requests for one address with a gap of 0.25 s: the first is dialled and not written."""
    room = await room_of(address_gap_s=0.25)
    room.fetcher.writes = False
    for number in range(2):
        room.request(f"http://h{number}.test/")
    await room.settle()
    return room


def write_first(room: Room, *, then_at_most: float) -> None:
    """The first request is written; the second is dialled after the gap, at most so many seconds later."""
    sent = room.fetcher.fetches[0].request.on_sent
    assert sent is not None
    sent()
    room.clock.advance(0.249)
    assert len(room.fetcher.fetches) == 1
    room.clock.advance(then_at_most)
    assert len(room.fetcher.fetches) == 2


async def test_the_gap_counts_from_what_was_sent() -> None:
    """A request that took its time to be written has its successor wait for the gap after that."""
    room = await unwritten()
    room.clock.advance(0.2)
    write_first(room, then_at_most=0.002)


async def test_a_start_waits_until_the_request_before_is_written() -> None:
    """A connection attempt that takes longer than the gap: the two requests would reach the server together."""
    room = await unwritten()
    room.clock.advance(0.6)
    assert len(room.fetcher.fetches) == 1
    write_first(room, then_at_most=0.052)


async def test_a_request_that_is_never_written_delays_the_next_for_a_second() -> None:
    """A server that accepts no connection: the hosts of its address do not wait for whole timeouts."""
    room = await unwritten()
    room.clock.advance(0.99)
    assert len(room.fetcher.fetches) == 1
    room.clock.advance(0.011)
    assert len(room.fetcher.fetches) == 2


async def test_a_loop_that_stood_still_between_dial_and_send_keeps_the_gap() -> None:
    """The second start was due in the meantime: the first is sent before it, and the gap counts from then."""
    room = await unwritten()
    room.clock._move_to(room.clock.monotonic() + 0.4)
    room.clock.run_due()
    assert len(room.fetcher.fetches) == 1
    write_first(room, then_at_most=0.002)


async def test_a_loop_that_stands_still_again_and_again_dials_all_the_same() -> None:
    """It is put off four times at most."""
    room = await room_of(address_gap_s=0.25)
    for number in range(2):
        room.request(f"http://h{number}.test/")
    await room.settle()
    for _ in range(5):
        assert len(room.fetcher.fetches) == 1
        room.clock._move_to(room.clock.monotonic() + 0.4)
        room.clock.run_due()
    assert len(room.fetcher.fetches) == 2


async def test_a_loop_that_stood_still_keeps_the_gap() -> None:
    """Starts that were due at once are made one after the other."""
    slots: AddressSlots[int] = AddressSlots(AddressLimits(4, 0.25))
    for number in range(3):
        assert slots.acquire("a", number, 0.0) == number * 0.25
    assert slots.confirm("a", 9.0) == 0.0
    slots.record_sent("a", 9.0)
    assert slots.confirm("a", 9.1) == 9.25
    assert slots.confirm("a", 9.25) == 0.0
    assert slots.refuses("a", 9.25) is False
    assert slots.acquire("a", 3, 9.25) == 9.5
