"""Requests of which nothing is heard, over a broker: a URL's fault, or that of downloaders that are all away."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from nephila.kernel.messages import FetchRequest, Outcome
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import REQUESTS, REQUESTS_BROWSER, Topic
from nephila.scheduler.config import SchedulerConfig
from nephila_cluster.scheduler.read_progress import POLL_S, POLLS
from nephila_cluster.scheduler.request_liveness import LOOK_S, RequestLiveness

from tests.cluster.scheduler.cluster_rig import World, ends, web
from tests.fake_kafka import FakeKafka, FakeKafkaBus

HOSTS, PAGES = 4, 6
URLS = HOSTS * PAGES
LEASE_S = SchedulerConfig().start_by_s + SchedulerConfig().lease_s


@pytest.fixture
async def world(tmp_path):
    """Four sites; one scheduler has all partitions."""
    world = World(tmp_path, web(HOSTS, PAGES))
    await world.start("a")
    await world.give("a")
    return world


def seeds() -> list[str]:
    """The first page of each site."""
    return [f"http://h{host}.test/0" for host in range(HOSTS)]


@pytest.mark.full
@pytest.mark.parametrize("also", ["", "a scheduler is killed", "the broker answers no questions"])
async def test_no_url_fails_while_all_downloaders_are_away(world, also):
    """For three hours what is handed out is taken by nobody; then everything is fetched after all."""
    world.submit(*seeds())
    await world.until(5)
    world.away = True
    await world.run(1.5 * 3600)
    world.broker.failures = 10**9 if "broker" in also else 0
    if "killed" in also:
        world.kill("a")
        await world.start("b")
        await world.give("b")
    await world.run(1.5 * 3600)
    assert len(world.rows) < URLS
    world.away = False
    await world.until(URLS, limit_s=4 * LEASE_S)
    assert world.outcomes() == ends(world.site)


@pytest.mark.parametrize("delay_s", [1.0, 60.0], ids=["last of all", "among others"])
async def test_a_url_that_ends_its_downloader_ends_after_its_tries(world, delay_s):
    """It was taken each time, as other outcomes say, or the broker where nothing else is left."""
    deadly = "http://h0.test/3"
    world.deaf = lambda request: request.url == deadly
    world.submit(*seeds(), delay_s=delay_s)
    await world.until(URLS, limit_s=4 * LEASE_S + 1000)
    row = world.rows.pop(deadly)
    assert (row.outcome, row.reason) == (Outcome.FAILED, "lease_expired")
    assert {row.outcome for row in world.rows.values()} == {Outcome.STORED}


async def test_what_came_back_while_nobody_had_the_partition_is_read_first(world):
    """Outcomes wait in their topic until long after the leases would have ended: nothing is fetched again."""
    world.submit(*seeds())
    await world.until(5)
    while not world.busy:
        await world.run(0.05)
    world.kill("a")
    await world.run(10 * LEASE_S)
    await world.start("b")
    await world.give("b")
    await world.until(URLS)
    assert world.outcomes() == ends(world.site)
    assert len(world.fetches) == URLS


class Silent:
    """The frontier of a partition whose requests have no outcomes, and those that count as consumed."""

    def __init__(self) -> None:
        self.in_flight = self
        self.consumed: list[bool] = []
        """Of each note: whether it is of the requests for a browser."""

    def waits_since(self, before: float) -> bool:
        return not self.consumed

    def note_consumed(self, at: float, rendered: bool) -> None:
        self.consumed.append(rendered)


class Room:
    """Four partitions in two lanes, each with a request in both topics that no group has read."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.bus = FakeKafkaBus(FakeKafka(4, lanes=2), self.clock, "owner")
        for partition in range(4):
            for topic in (REQUESTS, REQUESTS_BROWSER):
                self.bus.publish(topic, partition, FetchRequest())
        self.owners = {partition: SimpleNamespace(frontier=Silent()) for partition in range(4)}
        self.liveness = RequestLiveness(self.owners, SchedulerConfig(), self.bus, self.clock)

    async def look(self) -> None:
        self.liveness.start()
        await self.pass_time(LOOK_S)

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for _ in range(10):
            await asyncio.sleep(0)

    def read(self, group: str, topic: Topic, lane: int) -> None:
        self.bus.broker.committed[group, topic.name, lane] = 2

    @property
    def consumed(self) -> dict[int, list[bool]]:
        return {number: owner.frontier.consumed for number, owner in self.owners.items()}


@pytest.fixture
async def room():
    room = Room()
    yield room
    await room.liveness.close()


async def test_an_answer_about_requests_of_the_owner_before_is_dropped(room):
    """The member has lost the partition meanwhile and taken it again: leases continue with their instants, and requests
    that were never sent are on their way."""
    await room.look()
    room.owners[0] = SimpleNamespace(frontier=Silent())
    del room.owners[1]
    for lane in range(2):
        room.read("downloader", REQUESTS, lane)
    await room.pass_time(POLL_S)
    assert room.consumed == {0: [], 2: [False], 3: [False]}


async def test_partitions_do_not_wait_for_a_lane_without_reader(room):
    room.read("downloader", REQUESTS, 0)
    await room.look()
    assert room.consumed == {0: [False], 1: [], 2: [False], 3: []}
    for _ in range(POLLS):
        await room.pass_time(POLL_S)
    assert room.consumed == {0: [False], 1: [], 2: [False], 3: []}


async def test_requests_for_a_browser_do_not_wait_for_the_others(room):
    """The first group has no members, or the broker does not answer for it."""
    room.bus.broker.failures = 1
    room.read("browser", REQUESTS_BROWSER, 0)
    await room.look()
    assert room.consumed == {0: [True], 1: [], 2: [True], 3: []}
