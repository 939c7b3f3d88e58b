"""Reservations of memory: what is granted, what waits, and what continues when memory is free."""

from __future__ import annotations

import asyncio
import random

import pytest
from nephila.kernel.process.container import Usage
from nephila.kernel.process.memory_budget import GROWN_S, POLL_S, MemoryBudget, Reservation, ReservationKind, unlimited
from nephila.kernel.runtime.clock import ManualClock

MIB = 1 << 20


class Box:
    """A container of 1,000 MiB, of which 900 may be used, and the budget of a process in it."""

    def __init__(self, used_mib: int = 100, processes: int = 1) -> None:
        self.clock = ManualClock()
        self.used_mib = used_mib
        self.freed = 0
        self.granted: list[int] = []
        self.budget = MemoryBudget(self.clock, self.read, processes=processes, free_unused=self.free_unused)

    def read(self) -> Usage:
        """See `Container.read`."""
        return Usage(self.used_mib * MIB, 1000 * MIB, 0.0, 2.0)

    def free_unused(self) -> None:
        """See `MemoryBudget`."""
        self.freed += 1

    def ask(self, mib: int, kind: ReservationKind = ReservationKind.BODY, host: str = "") -> Reservation:
        """A reservation that notes its grant, at once or later."""
        one = self.budget.open(kind, host)
        if one.ask(mib * MIB, lambda yes: self.granted.append(mib if yes else -mib)):
            self.granted.append(mib)
        return one


def test_no_more_is_granted_than_the_container_has() -> None:
    """700 of the 800 MiB that are left; the next reservation waits until one is released."""
    box = Box()
    first, second = box.ask(400), box.ask(300)
    third = box.ask(200)
    assert box.granted == [400, 300]
    assert box.budget.waiting == 1
    assert box.budget.outstanding_bytes == 700 * MIB
    first.release()
    box.clock.advance(POLL_S)
    assert box.granted == [400, 300, 200]
    assert box.budget.waiting == 0
    for one in (second, third):
        one.release()
    assert box.budget.outstanding_bytes == 0
    assert box.clock.next_due is None


def test_bytes_that_arrived_are_not_counted_twice() -> None:
    """They are part of the memory in use."""
    box = Box()
    first = box.ask(400)
    box.used_mib, first.arrived_bytes = 300, 200 * MIB
    box.clock.advance(1)
    assert box.budget.left_bytes() == 400 * MIB
    box.ask(400)
    assert box.granted == [400, 400]


def test_a_grant_counts_in_full_until_the_next_reading() -> None:
    """Reservations within one instant do not share what is left."""
    box = Box()
    kept = [box.ask(100) for _ in range(20)]
    assert box.granted == [100] * 8
    assert box.budget.waiting == len(kept) - 8


def test_the_oldest_is_always_granted() -> None:
    """A body larger than the container allows, and one that grows while everything else waits: the crawl continues."""
    box = Box(used_mib=850)
    first = box.ask(300)
    other = box.ask(10)
    assert box.granted == [300]
    assert first.ask(600 * MIB, lambda _: box.granted.append(600))
    first.release()
    box.clock.advance(POLL_S)
    assert box.granted == [300, 10]
    other.release()


def test_a_part_of_a_body_makes_room_for_the_oldest() -> None:
    """Three bodies of unknown length that grow: the youngest is refused, and the oldest has its memory."""
    box = Box()
    oldest, second, youngest = box.ask(250), box.ask(250), box.ask(250)
    for one in (second, youngest):
        assert not one.ask(500 * MIB, lambda yes: box.granted.append(500 if yes else -500))
    assert oldest.ask(500 * MIB, lambda _: None)
    box.clock.run_due()
    assert box.granted == [250, 250, 250, -500]
    assert (box.budget.refused, youngest.granted_bytes, second.granted_bytes) == (1, 0, 250 * MIB)
    oldest.release()
    box.clock.advance(POLL_S)
    assert box.granted[-1] == 500


def test_each_kind_has_its_oldest() -> None:
    """A body that waits for a child process cannot keep the child from its memory."""
    box = Box(used_mib=850)
    bodies = [box.ask(300), box.ask(300)]
    child = box.ask(100, ReservationKind.CHILD)
    assert box.granted == [300, 100]
    child.release()
    for body in bodies:
        body.release()


def test_what_fits_does_not_wait_behind_what_does_not() -> None:
    """A small reservation is granted beside a large one that waits; the large one follows when there is room."""
    box = Box()
    held = [box.ask(400), box.ask(300)]
    waiting = [box.ask(500), box.ask(10)]
    assert box.granted == [400, 300, 10]
    held[0].release()
    box.clock.advance(POLL_S)
    assert box.granted == [400, 300, 10]
    waiting[1].release()
    box.clock.advance(POLL_S)
    assert box.granted == [400, 300, 10, 500]


def test_bodies_of_one_host_have_a_share() -> None:
    """A quarter of 900 MiB; another host is granted beside it, and a single body may be larger."""
    box = Box()
    box.ask(1, ReservationKind.BODY)
    held = [box.ask(100, host="a.test"), box.ask(100, host="a.test"), box.ask(100, host="a.test")]
    assert (box.granted, box.budget.waiting) == ([1, 100, 100], 1)
    held.append(box.ask(300, host="b.test"))
    assert box.granted == [1, 100, 100, 300]
    held[0].settle(20 * MIB)
    box.clock.advance(POLL_S)
    assert (box.granted, box.budget.waiting) == ([1, 100, 100, 300, 100], 0)
    for one in held:
        one.release()


def test_a_page_in_a_browser_that_does_not_end_is_memory_in_use() -> None:
    """After its first seconds the rest of its reservation is small: the pages of others are rendered beside it."""
    box = Box()
    pages = [box.ask(160, ReservationKind.BROWSER) for _ in range(5)]
    other = box.ask(160, ReservationKind.BROWSER)
    assert box.budget.waiting == 1
    box.used_mib = 300
    box.clock.advance(GROWN_S + POLL_S)
    assert (box.budget.waiting, other.granted_bytes) == (0, 160 * MIB)
    assert len(pages) == 5


def test_memory_that_others_free_is_used() -> None:
    """Nothing is released here, but the memory in use falls."""
    box = Box(used_mib=800)
    held = box.ask(90)
    waiting = box.ask(200)
    box.clock.advance(5)
    assert box.granted == [90]
    assert 5 <= box.freed <= 11, "half a second apart"
    box.used_mib = 300
    box.clock.advance(POLL_S)
    assert box.granted == [90, 200]
    assert held.granted_bytes + waiting.granted_bytes == 290 * MIB


def test_processes_share_what_is_left() -> None:
    """Two workers: each may reserve half."""
    box = Box(processes=2)
    kept = [box.ask(100) for _ in range(6)]
    assert box.granted == [100] * 4
    assert len(kept) == 6


def test_a_forgotten_reservation_is_free() -> None:
    """Its last reference is gone, granted or waiting."""
    box = Box()
    granted, waiting = box.ask(800), box.ask(100)
    del granted
    assert box.budget.outstanding_bytes == 0
    assert box.budget.streaming == 0
    del waiting
    assert box.budget.waiting == 0


def test_a_settled_body_no_longer_streams() -> None:
    """Its memory stays reserved until it is released."""
    box = Box()
    body = box.ask(100)
    assert box.budget.streaming == 1
    body.settle(40 * MIB)
    assert (box.budget.streaming, box.budget.outstanding_bytes) == (0, 40 * MIB)
    body.release()
    body.release()
    assert (box.budget.streaming, box.budget.outstanding_bytes) == (0, 0)


async def test_a_cancelled_wait_reserves_nothing() -> None:
    """A call of a child that is given up while it waits."""
    box = Box(used_mib=850)
    held = await box.budget.reserve(ReservationKind.CHILD, 300 * MIB)
    waiting = asyncio.ensure_future(box.budget.reserve(ReservationKind.CHILD, 300 * MIB))
    await asyncio.sleep(0)
    assert box.budget.waiting == 1
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert box.budget.waiting == 0
    held.release()


def test_without_a_limit_nothing_waits() -> None:
    """As in tests, and where admission is off."""
    budget = unlimited()
    kept = [budget.open(ReservationKind.BODY) for _ in range(100)]
    assert all(one.ask(1000 * MIB, lambda _: None) for one in kept)
    assert budget.waited == 0


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_calls(seed: int) -> None:
    """What is granted fits, but for the oldest of each kind; whatever waits is granted once all others are released."""
    rng = random.Random(seed)
    box = Box()
    live: list[Reservation] = []
    for _ in range(500):
        action = rng.random()
        if action < 0.5:
            live.append(box.ask(rng.randrange(1, 300), rng.choice(list(ReservationKind))))
        elif action < 0.7 and live:
            one = rng.choice(live)
            one.settle(rng.randrange(300) * MIB)
        elif action < 0.9 and live:
            live.pop(rng.randrange(len(live))).release()
        else:
            box.clock.advance(rng.random() / 10)
        largest = 3 * 300 * MIB
        assert box.budget.outstanding_bytes <= 800 * MIB + largest
        assert box.budget.streaming >= 0
    while live:
        live.pop(0).release()
        box.clock.advance(POLL_S)
        assert all(one.granted_bytes or box.budget.waiting for one in live)
    assert (box.budget.outstanding_bytes, box.budget.waiting, box.budget.streaming) == (0, 0, 0)
