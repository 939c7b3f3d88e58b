"""Two downloaders on a real broker: a moved request is finished or given back first; a frozen member dials nothing."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest
from nephila.downloader.coordination import Coordination
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.dns.hash_tree import HashTree
from nephila.downloader.routing.router import DirectRouter
from nephila.downloader.service import Downloader
from nephila.kernel.messages import FetchOutcome, FetchRequest, FetchResult
from nephila.kernel.net.egress import EgressGuard
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import OUTCOMES, REQUESTS
from nephila_cluster.kafka.admin import topics as admin
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.service.lost_requests import LostRequests

from tests.cluster.kafka.group.test_rebalance import vanish
from tests.contracts.buses import config_for
from tests.downloader.downloader_room import FakeFetcher, Names, answer
from tests.downloader_settings import downloader_config
from tests.waits import until

PARTITIONS = 8


class Member:
    """A downloader with a bus of its own and a fetcher that a test controls."""

    def __init__(self, config, name: str) -> None:
        clock = SystemClock()
        self.bus = KafkaBus(msgspec.structs.replace(config, name=name), clock)
        names = Names()
        names.table = {f"h{p}.test": ("8.8.8.8",) for p in range(PARTITIONS)}
        self.fetcher = FakeFetcher()
        settings = downloader_config(per_address=0, address_gap_s=0, move_s=0.2)
        router = DirectRouter(GuardedResolver(EgressGuard(False), names, HashTree(100), clock))
        coordination = Coordination(membership_valid=lambda: self.bus.may_emit("downloader"))
        self.service = Downloader(settings, self.bus, clock, router, self.fetcher, coordination)
        self.bus.watch_partitions("downloader", self.service.partitions)
        self.bus.watch_crashes("downloader", LostRequests(self.bus, clock).report)

    async def start(self) -> None:
        """Subscribe, then join."""
        await self.service.start()
        await self.bus.start()

    @property
    def held(self) -> frozenset[int]:
        """Partitions it reads."""
        return self.bus.held("downloader")


@pytest.fixture(params=[PARTITIONS, 4], ids=["a lane each", "two in a lane"])
async def rig(request, broker):
    """Members, and what they say."""

    class Rig:
        def __init__(self) -> None:
            self.config = config_for(broker, partitions=PARTITIONS, lanes=request.param)
            self.said: list[tuple[int, FetchOutcome]] = []
            self.scheduler = KafkaBus(msgspec.structs.replace(self.config, name="s"), SystemClock())
            self.members: list[Member] = []

        async def member(self, name: str) -> Member:
            """One more downloader."""
            made = Member(self.config, name)
            self.members.append(made)
            await made.start()
            return made

        def request(self, partition: int, fetch_no: int) -> None:
            """One page of the partition's host."""
            host = f"h{partition}.test"
            made = FetchRequest("j", b"%16d" % partition, f"http://{host}/", host, fetch_no=fetch_no, attempt=1)
            made.lease_until = time.time() + 180
            self.scheduler.publish(REQUESTS, partition, made)

    made = Rig()
    await admin.apply(made.config)

    def on_outcome(delivery) -> None:
        made.said.append((delivery.partition, delivery.message))
        delivery.ack()

    made.scheduler.subscribe(OUTCOMES, "scheduler", on_outcome, credits=999)
    await made.scheduler.start()
    yield made
    for member in made.members:
        await member.service.close()
    await asyncio.gather(*(member.bus.close() for member in made.members), made.scheduler.close())


async def test_moving_fetches_are_given_back_before_the_other_member_begins(rig):
    """Requests of kept partitions end here; each moved one is given back once and fetched by the other member."""
    a = await rig.member("a")
    await until(lambda: len(a.held) == PARTITIONS)
    for p in range(PARTITIONS):
        rig.request(p, 1)
    await until(lambda: len(a.fetcher.fetches) == PARTITIONS)
    b = await rig.member("b")
    await until(lambda: len(a.held) + len(b.held) == PARTITIONS and bool(b.held))
    await until(lambda: len(rig.said) >= len(b.held))
    assert sorted(p for p, _ in rig.said) == sorted(b.held)
    assert {outcome.result for _, outcome in rig.said} == {FetchResult.UNSPECIFIED}
    assert all(outcome.started_at for _, outcome in rig.said)
    for p in range(PARTITIONS):
        rig.request(p, 2)
    await until(lambda: len(b.fetcher.fetches) == len(b.held))
    assert {fetch.request.target.href for fetch in b.fetcher.fetches} == {f"http://h{p}.test/" for p in b.held}
    going = [fetch for fetch in a.fetcher.fetches if not fetch.aborted]
    assert len(going) == len(a.held)
    rig.said.clear()
    for fetch in going:
        fetch.on_done(answer(200))
    await until(lambda: len(rig.said) == len(a.held))
    assert {(p, outcome.result) for p, outcome in rig.said} == {(p, FetchResult.FETCHED) for p in a.held}


async def test_a_member_that_was_silent_dials_nothing(rig):
    """No heartbeat gets through: what was taken waits, and is dropped when the group has gone on."""
    a = await rig.member("a")
    await until(lambda: len(a.held) == PARTITIONS)
    coordinator = a.bus.groups["downloader"].consumer._coordinator

    async def unheard() -> bool:
        await asyncio.sleep(0.05)
        return True

    coordinator._do_heartbeat = unheard
    await until(lambda: not a.bus.may_emit("downloader"))
    rig.request(0, 1)
    await until(lambda: a.service.in_flight == 1)
    b = await rig.member("b")
    await until(lambda: len(b.held) == PARTITIONS)
    assert a.fetcher.fetches == []
    a.service.partitions.on_lost(frozenset(range(PARTITIONS)))
    assert (a.service.in_flight, rig.said) == (0, [])


async def test_what_a_killed_member_had_in_hand_is_reported_after_its_session(rig):
    """Once each, not what came after it, and not before it could dial no more; the lease need not end."""
    a = await rig.member("a")
    await until(lambda: len(a.held) == PARTITIONS)
    for p in range(3):
        rig.request(p, 1)
    await until(lambda: len(a.fetcher.fetches) == 3)
    a.fetcher.fetches[0].on_done(answer(200))
    await until(lambda: len(rig.said) == 1)
    rig.said.clear()
    killed_at = time.time()
    await vanish(a.bus)
    b = await rig.member("b")
    rig.request(1, 2)
    await until(lambda: len(b.held) == PARTITIONS)
    await until(lambda: len(b.fetcher.fetches) == 1)
    await until(lambda: len(rig.said) == 2)
    session_s = rig.config.session_s
    reported = dict(rig.said)
    assert sorted(reported) == [0, 2], "partition 1 has a newer request of that URL"
    for outcome in reported.values():
        assert (outcome.result, outcome.reason) == (FetchResult.FAILED, "lease_expired")
        assert (outcome.fetch_no, outcome.attempt) == (1, 1)
        assert killed_at + 1.25 * session_s < outcome.ended_at < time.time()
    assert len(b.fetcher.fetches) == 1
