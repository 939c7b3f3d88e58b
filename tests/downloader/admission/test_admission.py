"""The limit on concurrent fetches: its first batch, its steps, and what the downloader does with it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from nephila.downloader.admission.admission import STALL_S, Admission
from nephila.downloader.admission.capacity import Thresholds
from nephila.kernel.process.container import Usage
from nephila.kernel.process.memory_budget import BODY_FACTOR, LARGE_BYTES, MemoryBudget, ReservationKind
from nephila.kernel.runtime.clock import ManualClock

from tests.downloader.downloader_room import Room, answer

MIB = 1 << 20
GIB = 1 << 30


class Machine:
    """A container whose load a test sets, and the admission that reads it."""

    def __init__(self, *, memory: int = 0, limit: int = 16 * GIB, cores: float = 2.0, **settings: Any) -> None:
        self.clock = ManualClock()
        self.memory, self.limit, self.cores = memory, limit, cores
        self.cpu_s = 0.0
        self.cpu_rate = 0.0
        self.pressure = 0.0
        self.fetching = 0
        self.limits: list[int] = []
        self.budget = MemoryBudget(self.clock, self.read)
        settings = {"most": 100, "first_batch": 5, "thresholds": Thresholds(), "budget": self.budget, **settings}
        self.admission = Admission(
            self.clock, self.read, lambda: self.fetching, self.limits.append, lambda: False, **settings
        )

    def read(self) -> Usage:
        """See `Container.read`."""
        return Usage(self.memory, self.limit, self.cpu_s, self.cores, self.pressure)

    def pass_s(self, seconds: int, *, busy: bool = True) -> None:
        """Let time pass; as many fetches are in flight as the limit allows."""
        for _ in range(seconds):
            if busy:
                self.fetching = self.admission.limit
            self.cpu_s += self.cpu_rate
            self.clock.advance(1)

    def grow(self, *, busy: bool = True) -> None:
        """Five pages arrive, and the limit has time to double as often as it can."""
        for _ in range(5):
            self.admission.on_page(10_000)
        self.pass_s(7, busy=busy)

    @property
    def now(self) -> int:
        """The limit."""
        return self.admission.limit


def test_it_begins_with_a_first_batch() -> None:
    """Until five pages have arrived. Then the limit doubles each second."""
    machine = Machine()
    machine.admission.start()
    machine.admission.wake()
    assert machine.limits == [5]
    assert machine.admission.bound_by == "first batch"
    machine.fetching = 5
    for _ in range(5):
        machine.admission.on_page(10_000)
    assert machine.now == 10
    machine.pass_s(5)
    assert machine.limits == [5, 10, 20, 40, 80, 100]
    assert machine.admission.bound_by == ""


def test_each_batch_of_pages_doubles_the_limit() -> None:
    """As many pages as the limit allows fetches: their sizes are known, so no second has to pass."""
    machine = Machine()
    machine.admission.start()
    machine.admission.wake()
    for _ in range(5 + 10 + 20 + 40 + 80):
        machine.fetching = machine.now
        assert machine.admission.notice_from == 0
        machine.admission.on_page(10_000)
        if machine.now == 100:
            break
    assert machine.limits == [5, 10, 20, 40, 80, 100]
    assert machine.admission.notice_from == LARGE_BYTES


def test_batches_of_large_pages_rise_only_as_far_as_the_memory() -> None:
    """Pages of 10 MB in 512 MB: many have been published, and the limit follows their size."""
    machine = Machine(memory=120 * MIB, limit=512 * MIB)
    machine.admission.start()
    machine.admission.wake()
    for _ in range(200):
        machine.fetching = 1
        machine.admission.on_page(10 * MIB)
        assert machine.now * 10 * MIB * BODY_FACTOR <= 0.9 * 512 * MIB - 120 * MIB


def test_the_first_batch_lasts_while_large_bodies_arrive() -> None:
    """No other fetch starts before the first ones have arrived (found by a crawl of pages of 9 MB that begin after two
    seconds)."""
    machine = Machine()
    machine.admission.start()
    machine.admission.wake()
    machine.fetching = 5
    bodies = [machine.budget.open(ReservationKind.BODY) for _ in range(5)]
    for body in bodies:
        assert body.ask(40 * MIB, lambda _: None)
    machine.pass_s(int(STALL_S) - 1, busy=False)
    assert machine.now == 5
    assert machine.admission.bound_by == "first batch"
    for body in bodies:
        body.release()
        machine.admission.on_page(10 * MIB)
    machine.pass_s(10)
    assert machine.now == 100


def test_large_bodies_that_do_not_end_do_not_hold_the_first_batch() -> None:
    """Five servers drip: after some seconds without a page other fetches start beside them."""
    machine = Machine()
    machine.admission.start()
    machine.admission.wake()
    machine.fetching = 5
    bodies = [machine.budget.open(ReservationKind.BODY) for _ in range(5)]
    assert all(body.ask(2 * MIB, lambda _: None) for body in bodies)
    machine.pass_s(60)
    assert machine.now == 100


def test_silent_servers_do_not_hold_the_first_batch() -> None:
    """Fetches without a large body hold no memory: others start beside them, twice as many each second at most."""
    machine = Machine()
    machine.admission.start()
    machine.admission.wake()
    machine.pass_s(5)
    assert machine.limits == [5, 10, 20, 40, 80, 100]


def test_with_room_the_limit_stays_at_its_maximum() -> None:
    """Also when little is in flight, with half of the memory in use and one of two cores busy."""
    machine = Machine(memory=8 * GIB)
    machine.cpu_rate = 1.0
    machine.admission.start()
    machine.admission.wake()
    machine.grow()
    machine.limits.clear()
    for fetching in (100, 3, 0, 50, 1, 100):
        machine.fetching = fetching
        machine.pass_s(2, busy=False)
    assert machine.limits == []
    assert machine.now == 100


def test_large_pages_lower_the_limit_at_once() -> None:
    """Pages of 10 MB in 512 MB: the sum of what is in flight stays below the threshold; it recovers afterwards."""
    machine = Machine(memory=120 * MIB, limit=512 * MIB)
    machine.admission.start()
    machine.admission.wake()
    machine.grow()
    assert machine.now == 100
    machine.fetching = 2
    body = machine.budget.open(ReservationKind.BODY)
    assert body.ask(10 * MIB * BODY_FACTOR, lambda _: None)
    machine.admission.on_page(10 * MIB)
    assert machine.now * 10 * MIB * BODY_FACTOR <= 0.9 * 512 * MIB - 120 * MIB
    assert machine.admission.bound_by == "memory"
    body.release()
    machine.pass_s(60)
    assert machine.now == 100


def test_memory_above_the_threshold_leaves_one_fetch() -> None:
    """Memory of others: the crawl continues slowly."""
    machine = Machine(memory=500 * MIB, limit=512 * MIB)
    machine.admission.start()
    machine.admission.wake()
    machine.grow()
    assert machine.now == 1
    machine.memory = 100 * MIB
    machine.pass_s(20)
    assert machine.now > 50


def test_cpu_above_the_threshold_stops_the_rise_and_lowers_nothing() -> None:
    """A process that uses its one core completely keeps its concurrency: with less of it, the core would wait."""
    machine = Machine(cores=1.0)
    machine.admission.start()
    machine.admission.wake()
    machine.grow()
    machine.cpu_rate = 1.0
    machine.pass_s(60)
    assert machine.now == 100


def test_cpu_above_the_threshold_keeps_the_first_batch() -> None:
    """From the first second on there is no CPU left: the limit rises when there is."""
    machine = Machine(cores=1.0)
    machine.cpu_rate = 2.0
    machine.admission.start()
    machine.admission.wake()
    machine.pass_s(1)
    machine.grow()
    assert machine.now == 5
    assert machine.admission.bound_by == "cpu"
    machine.cpu_rate = 0.3
    machine.pass_s(10)
    assert machine.now == 100


def test_the_limit_settles_where_the_load_follows_it() -> None:
    """A load in proportion to the limit: no oscillation."""
    machine = Machine(cores=1.0)
    machine.admission.start()
    machine.admission.wake()
    for _ in range(100):
        machine.cpu_rate = min(machine.now * 0.02, 1.0)
        machine.pass_s(1)
    machine.limits.clear()
    for _ in range(100):
        machine.cpu_rate = min(machine.now * 0.02, 1.0)
        machine.pass_s(1)
    assert machine.now >= 45
    assert machine.limits == []


def test_a_late_event_loop_counts() -> None:
    """A callback of five seconds: nothing further is taken until the loop is on time."""
    machine = Machine()
    machine.admission.start()
    machine.admission.wake()
    machine.grow()
    machine.clock._monotonic += 5.0
    machine.pass_s(1)
    assert machine.now < 100
    assert machine.admission.bound_by == "loop"
    machine.pass_s(20)
    assert machine.now == 100


def test_memory_pressure_stops_the_rise() -> None:
    """Tasks wait for memory although the figures look well."""
    machine = Machine()
    machine.pressure = 0.4
    machine.admission.start()
    machine.admission.wake()
    machine.pass_s(1)
    machine.grow()
    assert machine.now == 5
    assert machine.admission.bound_by == "pressure"
    machine.pressure = 0.0
    machine.pass_s(6)
    assert machine.now == 100


def test_processes_share_a_container() -> None:
    """Two workers take half each."""
    one = Machine(memory=100 * MIB, limit=512 * MIB, request_bytes=40.0 * MIB)
    two = Machine(memory=100 * MIB, limit=512 * MIB, request_bytes=40.0 * MIB, processes=2)
    for machine in (one, two):
        machine.admission.start()
        machine.admission.wake()
        machine.grow(busy=False)
    assert two.now <= one.now / 2 + 1


@pytest.mark.parametrize("seed", range(5))
def test_any_load_leaves_the_limit_in_its_bounds(seed: int) -> None:
    """Between 1 and `most`, with large pages, spikes and pauses."""
    rng = random.Random(seed)
    machine = Machine(limit=512 * MIB)
    machine.admission.start()
    machine.admission.wake()
    bodies = []
    for _ in range(500):
        machine.memory = rng.randrange(700 * MIB)
        machine.cpu_rate = rng.random() * 3
        machine.fetching = rng.randrange(120)
        if rng.random() < 0.3:
            bodies.append(machine.budget.open(ReservationKind.BODY))
            bodies[-1].ask(rng.randrange(16 * LARGE_BYTES), lambda _: None)
            machine.admission.on_page(rng.randrange(4 * LARGE_BYTES))
        elif bodies:
            bodies.pop(rng.randrange(len(bodies))).release()
        machine.pass_s(1, busy=False)
        assert 1 <= machine.now <= 100
        assert machine.budget.streaming >= 0


# ---- in the downloader


def room_of(machine: Machine, **settings: Any) -> Room:
    """A downloader whose admission reads this container."""

    def make(in_flight: Any, on_limit: Any, is_idle: Any) -> Admission:
        return Admission(
            room_clock,
            machine.read,
            in_flight,
            on_limit,
            is_idle,
            most=100,
            first_batch=5,
            thresholds=Thresholds(),
            budget=machine.budget,
        )

    room_clock = ManualClock()
    return Room(make_admission=make, clock=room_clock, per_address=0, **settings)


async def test_no_more_fetches_than_admitted() -> None:
    """The others wait, without a dial, until pages show that there is room."""
    room = room_of(Machine())
    await room.downloader.start()
    for number in range(20):
        room.request(f"http://h{number}.test/", url_key=bytes([number]) * 16)
    await room.settle()
    assert len(room.fetcher.fetches) == 5
    for number in range(5):
        room.reply(number, answer(200, b"<p>x", content_type="text/html"))
    await room.settle()
    assert len(room.fetcher.fetches) == 5 + 10


async def test_unacknowledged_large_pages_count() -> None:
    """A parser that is slow: pages of 10 MB wait for it, and nothing further is fetched."""
    machine = Machine(memory=100 * MIB, limit=512 * MIB)
    room = room_of(machine)
    room.hold = True
    await room.downloader.start()
    for number in range(40):
        room.request(f"http://h{number}.test/", url_key=bytes([number]) * 16)
    await room.settle()
    done = 0
    while done < len(room.fetcher.fetches):
        response = answer(200, bytes(10 * MIB), content_type="text/html")
        response.memory = machine.budget.open(ReservationKind.BODY)
        if not response.memory.ask(10 * MIB * BODY_FACTOR, lambda _: None):
            break
        response.memory.settle(10 * MIB * BODY_FACTOR)
        room.reply(done, response)
        done += 1
        await room.settle()
    assert 5 <= done <= 10
    room.hold = False
    assert machine.budget.outstanding_bytes == done * 10 * MIB * BODY_FACTOR
    for delivery in room.held:
        delivery.ack()
    await room.settle()
    assert machine.budget.outstanding_bytes == 0


async def test_fewer_requests_are_taken_than_wait() -> None:
    """The credits of the subscription follow the limit: the rest stays in the bus."""
    room = room_of(Machine(memory=500 * MIB, limit=512 * MIB))
    await room.downloader.start()
    room.request("http://first.test/")
    await room.settle()
    room.clock.advance(2)
    for number in range(20):
        room.request(f"http://h{number}.test/", url_key=bytes([number]) * 16)
    await room.settle()
    assert room.downloader.admission is not None
    assert room.downloader.admission.limit == 1
    assert room.downloader.in_flight == 2
    await room.downloader.close()


async def test_requests_are_taken_in_proportion_to_the_limit() -> None:
    """A request has its credit until its outcome is durable. With credits for two batches of fetches, the process would
    wait for the next commit most of the time (found by bench_shapes: half of the pages per second)."""
    room = room_of(Machine(), window=1000, concurrency=100)
    await room.downloader.start()
    room.request("http://first.test/")
    await room.settle()
    assert room.downloader.admission is not None
    for _ in range(5):
        room.downloader.admission.on_page(10_000)
    room.clock.advance(3)
    for number in range(250):
        room.request(f"http://h{number}.test/", url_key=bytes([number]) * 16)
    await room.settle()
    assert 80 <= room.downloader.admission.limit < 100
    assert room.downloader.in_flight == 251
    await room.downloader.close()


async def test_requests_that_wait_for_names_do_not_hold_the_first_batch() -> None:
    """Names whose servers are silent: other requests are taken beside them from the start."""
    room = room_of(Machine())
    await room.downloader.start()
    for number in range(100):
        room.request(f"http://h{number}.test/", url_key=bytes([number]) * 16)
    assert room.downloader.in_flight == 100
    await room.downloader.close()


async def test_an_idle_downloader_has_no_timer() -> None:
    """A program without work sleeps; the next request starts the measurement again."""
    room = room_of(Machine())
    await room.downloader.start()
    assert room.clock.next_due is None
    room.request("http://a.test/")
    await room.settle()
    assert room.clock.next_due is not None
    room.reply(0, answer(200, b"<p>x", content_type="text/html"))
    await room.settle()
    room.clock.advance(2)
    assert room.clock.next_due is None
