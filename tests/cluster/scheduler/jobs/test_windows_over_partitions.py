"""Windows over several schedulers: nothing is fetched outside of them, the status states it, a successor keeps it."""

from __future__ import annotations

import pytest

from tests.cluster.scheduler.cluster_rig import Site, World
from tests.cluster.scheduler.jobs.test_quotas_over_partitions import page, status_of, submit

HOUR, DAY = 3_600.0, 86_400.0
PAGES = 600


@pytest.fixture
def world(tmp_path):
    """Hosts of one page; the window closes in 20 s, and a fetch takes four."""
    settings = {"concurrency": 4, "status_interval_s": 0.5}
    world = World(tmp_path, Site({page(n): [] for n in range(PAGES)}), took_s=4.0, **settings)
    world.clock.jump(DAY - world.clock.now() % DAY + 6 * HOUR - 20.0)
    return world


async def test_a_window_holds_in_all_partitions_and_after_a_takeover(world):
    """What was handed out before the window closed is fetched; the job is not done, and continues in the next one."""
    begin = world.clock.monotonic()
    await world.start("a")
    await world.start("b")
    await world.give("a", 0, 1)
    await world.give("b", 2, 3)
    submit(world, range(PAGES), windows=["22:00-06:00", "06:02-07:00"])
    await world.run(40.0)
    status = status_of(world)
    assert status.window.startswith("waits for its window, 22:00-06:00, 06:02-07:00 UTC, until ")
    assert status.queued > 0
    assert status.in_flight == 0
    count = len(world.rows)
    assert 0 < count < PAGES
    assert max(fetch.start for fetch in world.fetches) - begin < 20.0 + 1.0
    world.kill("b")
    await world.give("a", 2, 3)
    await world.run(40.0)
    assert len(world.rows) == count
    assert status_of(world).window
    await world.run(200.0)
    assert len(world.rows) == PAGES
    status = status_of(world)
    assert (status.done, status.window) == (True, "")
    world.check()
