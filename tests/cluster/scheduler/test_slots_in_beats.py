"""Where messages travel in beats, a scheduler has as many fetches at once as without: requests that are on their way,
and outcomes that wait for the next instant, take no slot of the downloaders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.messages import FetchRequest
from nephila.kernel.topics import JOBS, OUTCOMES, Topic
from nephila.scheduler.engine.dispatch import AHEAD
from nephila_cluster.kafka.beat import DIAL, READ
from nephila_cluster.kafka.job_delays import JobDelays

from tests.cluster.scheduler.cluster_rig import Site, World
from tests.fake_kafka import FakeKafkaBus

WAY_S = 0.075
"""A message to its reader, without a beat."""
PAGES = 60


class BusOfDownloader(FakeKafkaBus):
    """Publishes outcomes when the scheduler would read them."""

    def publish(self, topic: Topic, partition: int, message: Any) -> Receipt:
        if topic is JOBS:
            self.beat.set_least_delay(JobDelays().on_job(message))
        if topic is not OUTCOMES:
            return super().publish(topic, partition, message)
        publish, period_s = super().publish, self.beat.period_s
        wait_s = self.beat.wait_s(0.0) + READ * period_s if period_s else WAY_S
        self.clock.call_at(self.clock.monotonic() + wait_s, lambda: publish(topic, partition, message))
        return Receipt()


class TravellingWorld(World):
    """Messages take their time between scheduler and downloader."""

    def __init__(self, root: Path, site: Site, **config: Any) -> None:
        super().__init__(root, site, **config)
        self.outside = BusOfDownloader(self.broker, self.clock, "outside")

    def _fetch(self, partition: int, request: FetchRequest) -> None:
        fetch = super()._fetch
        arrives = self.clock.monotonic() + (self.outside.beat.wait_s(DIAL) or WAY_S)
        self.clock.call_at(arrives, lambda: fetch(partition, request))


async def fetches_at_once(root: Path, hosts: int, took_s: float, beat_s: float, **config: Any) -> float:
    """The mean over 20 s of a crawl with a delay of 1 s that has run for 5 s."""
    pages = [f"http://h{host}.test/{page}" for page in range(PAGES) for host in range(hosts)]
    world = TravellingWorld(
        root,
        Site({page: [] for page in pages}),
        took_s=took_s,
        beat_s=beat_s,
        per_address=0,
        address_gap_s=0.0,
        **config,
    )
    await world.start("m")
    await world.give("m")
    world.submit(*pages)
    await world.run(5.0)
    begin = world.clock.monotonic()
    await world.run(20.0)
    end = world.clock.monotonic()
    world.check()
    inside = (max(min(fetch.end, end) - max(fetch.start, begin), 0.0) for fetch in world.fetches)
    return sum(inside) / (end - begin)


@pytest.mark.parametrize(
    ("hosts", "took_s", "slots"),
    [
        pytest.param(24, 0.1, 8, id="the hosts are the limit"),
        pytest.param(80, 0.5, 16, id="the slots are the limit"),
        pytest.param(60, 0.2, 16, id="both are near"),
    ],
)
async def test_a_beat_takes_no_fetches_from_a_crawl(tmp_path, hosts, took_s, slots):
    without = await fetches_at_once(tmp_path / "without", hosts, took_s, 0.0, member_concurrency=slots)
    in_beats = await fetches_at_once(tmp_path / "with", hosts, took_s, 0.5, member_concurrency=slots)
    assert 0.97 * without <= in_beats <= slots + slots // AHEAD
