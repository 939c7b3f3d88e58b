"""Seeds of a file are read as fast as they are admitted: what no log has yet is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import Outlinks, Seed
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import SEEDS
from nephila.programs.crawl.seeds import AHEAD, UNCONFIRMED, publish

from tests.waits import until

PACK = 1000


class SlowGroup:
    """Takes everything and confirms when it is asked to."""

    def __init__(self) -> None:
        self.read = self.taken = 0
        self.open: list[Receipt] = []

    def file(self, packs: int) -> Iterator[Outlinks]:
        for number in range(packs):
            self.read += 1
            yield Outlinks("j", b"", "", 0, number.to_bytes(16, "big") * PACK)

    def add(self, links: Outlinks) -> Receipt:
        self.taken += 1
        self.open.append(Receipt())
        return self.open[-1]


async def test_a_group_that_confirms_nothing_stops_the_reading() -> None:
    group, most = SlowGroup(), UNCONFIRMED // PACK
    work = asyncio.ensure_future(publish(group.file(100), LocalBus(SystemClock()), group.add))
    await until(lambda: group.read > most + AHEAD)
    for confirmed in range(1, 84):
        assert group.taken <= most + confirmed
        assert group.read <= most + confirmed + AHEAD + 1
        group.open.pop(0).resolve_one()
        await until(lambda least=most + confirmed: group.taken > least)
    while group.open:  # a run that says that its seeds are read has all of them in logs
        assert not work.done()
        group.open.pop(0).resolve_one()
    await work
    assert (group.read, group.taken) == (100, 100)


async def test_seeds_that_are_not_packed_wait_as_well() -> None:
    """URLs with a password or a route."""
    bus, deliveries = LocalBus(SystemClock()), []
    bus.subscribe(SEEDS, "scheduler", deliveries.append, credits=1 << 30)
    seeds = (Seed("j", f"http://a.test/#/{n}") for n in range(UNCONFIRMED + 500))
    work = asyncio.ensure_future(publish(seeds, bus, lambda links: Receipt(0)))
    await until(lambda: len(deliveries) > UNCONFIRMED)
    assert not work.done()
    assert len(deliveries) == UNCONFIRMED + 1
    deliveries[0].ack()
    await until(lambda: len(deliveries) == UNCONFIRMED + 2)
    for n in range(1, UNCONFIRMED + 500):
        await until(lambda least=n: len(deliveries) > least)
        deliveries[n].ack()
    await work
    assert len(deliveries) == UNCONFIRMED + 500


async def test_what_is_admitted_at_once_waits_for_nothing() -> None:
    group = SlowGroup()
    await publish(group.file(100), LocalBus(SystemClock()), lambda links: Receipt(0))
    assert group.read == 100
