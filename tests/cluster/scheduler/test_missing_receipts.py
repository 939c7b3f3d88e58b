"""URLs whose receipts do not come, over a broker: messages that are lost, and services that are slow."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import Outcome
from nephila.kernel.topics import JOBS, PAGES, RECEIPTS, RECORDS
from nephila.scheduler.config import SchedulerConfig

from tests.cluster.scheduler.cluster_rig import World, ends, web
from tests.fake_kafka import PARTITIONS

HOSTS, PAGES_EACH = 4, 6
URLS = HOSTS * PAGES_EACH
LIMIT_S = 4 * SchedulerConfig().receipt_s


@pytest.fixture
async def world(tmp_path):
    """Four sites; one scheduler has all partitions."""
    world = World(tmp_path, web(HOSTS, PAGES_EACH, more=True))
    await world.start("a")
    await world.give("a")
    return world


def seeds() -> list[str]:
    """The first page of each site."""
    return [f"http://h{host}.test/0" for host in range(HOSTS)]


def lose(world: World, topic, *, every: int) -> list[int]:
    """The broker takes each so many-th message of a topic and loses it; returns how many so far."""
    append, seen, lost = world.broker.append, [0], [0]

    def take(to, partition, message):
        seen[0] += to is topic
        if to is topic and seen[0] % every == 0:
            lost[0] += 1
            return len(world.broker.logs[to.name, partition]) - 1
        return append(to, partition, message)

    world.broker.append = take
    return lost


@pytest.mark.parametrize("topic", [RECORDS, RECEIPTS], ids=lambda topic: topic.name)
@pytest.mark.parametrize("killed", [False, True], ids=["undisturbed", "taken over"])
async def test_lost_messages_leave_no_url_in_flight(world, topic, killed):
    """What was lost is fetched again, or its row published again: the rows are those of a crawl without a loss. A
    scheduler that takes over finds the same URLs."""
    lost = lose(world, topic, every=4)
    world.submit(*seeds())
    await world.run(60.0)
    world.broker.append = type(world.broker).append.__get__(world.broker)
    assert lost[0] > 3
    if killed:
        world.kill("a")
        await world.start("b")
        await world.give("b")
    await world.run(LIMIT_S)
    world.check()
    assert world.outcomes() == ends(world.site)
    ((_, scheduler),) = world.members.values()
    assert sum(len(frontier.in_flight) for frontier in scheduler.frontiers) == 0
    assert scheduler.counters.lost_messages >= (1 if killed else lost[0])


@pytest.mark.parametrize("slow", ["parser", "storage"])
async def test_a_service_that_is_behind_causes_no_fetch(world, slow):
    """Its group has not read everything: nothing proves a loss, however long it takes."""
    topic = {"parser": PAGES, "storage": RECORDS}[slow]
    lose(world, RECORDS, every=1)
    for partition in range(PARTITIONS):
        world.broker.logs[topic.name, partition] += [b""] if slow == "parser" else []
    if slow == "storage":
        world._read = lambda what, *rest, read=world._read: what is not RECORDS and read(what, *rest)
        world.broker.append = type(world.broker).append.__get__(world.broker)
    world.submit(*seeds())
    await world.run(3600.0)
    urls = [fetch.url for fetch in world.fetches]
    assert urls
    assert len(urls) == len(set(urls))


async def test_a_url_whose_page_is_lost_each_time_ends_as_lost(world):
    """Its row names the cause; a crawl with a message that can never come through ends."""
    url = "http://h0.test/3"
    append = world.broker.append

    def take(to, partition, message):
        if to is RECORDS and message.url == url and message.outcome is Outcome.STORED:
            return len(world.broker.logs[to.name, partition]) - 1
        return append(to, partition, message)

    world.broker.append = take
    world.submit(*seeds())
    await world.run(30 * SchedulerConfig().receipt_s)
    row = world.rows.pop(url)
    assert (row.outcome, row.reason) == (Outcome.FAILED, "lost")
    assert {**ends(world.site), url: "failed"} == {**world.outcomes(), url: "failed"}


async def test_a_job_that_its_topic_lost_is_published_again_from_the_frontier(world, caplog):
    """A scheduler that takes over knows it from the log: its links are not dropped as those of an unknown job."""
    world.submit(*seeds())
    await world.until(3)
    job = world.broker.all(JOBS, 0)[-1]
    world.kill("a")
    world.broker.logs[JOBS.name, 0].clear()
    await world.start("b")
    await world.give("b")
    assert "the topic jobs has no job 't', and the frontier has it" in caplog.text
    assert world.broker.all(JOBS, 0)[-1] == job
    await world.until(len(ends(world.site)))
    assert world.outcomes() == ends(world.site)
