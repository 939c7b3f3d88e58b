"""Gauges of readiness: hosts and URLs that wait for capacity alone, and for how long."""

from __future__ import annotations

import pytest

from tests.scheduler.world import Answer, World


async def test_what_waits_for_capacity_is_counted_and_its_age_grows(tmp_path):
    """One fetch at a time, five hosts of three URLs: four hosts wait, the longest since the first turn."""
    slow = Answer(took_s=100.0)
    world = await World(tmp_path, lambda request: slow, concurrency=1).start()
    frontier = world.scheduler.frontier
    assert (
        frontier.readiness.hosts_ready(0.0),
        frontier.readiness.urls_ready(0.0),
        frontier.readiness.oldest_ready_s(0.0),
    ) == (0, 0, 0.0)
    world.crawl(*[f"http://h{host}.test/{page}" for host in range(5) for page in range(3)])
    began = world.clock.monotonic()
    world.run(50.0)
    now = world.clock.monotonic()
    assert (frontier.readiness.hosts_ready(now), frontier.readiness.urls_ready(now)) == (4, 12)
    assert frontier.readiness.oldest_ready_s(began + 70.0) == pytest.approx(70.0)
    world.run()
    now = world.clock.monotonic()
    assert (
        frontier.readiness.hosts_ready(now),
        frontier.readiness.urls_ready(now),
        frontier.readiness.oldest_ready_s(now),
    ) == (0, 0, 0.0)
    await world.scheduler.close()
