"""A scope that is widened later leads to the same pages as one that was as wide from the start."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.runtime.clock import ManualClock
from nephila.scheduler.engine import admission
from nephila.scheduler.jobs import held_links

from tests.scheduler.invariants import check
from tests.scheduler.world import World, site

DEPTH = 6


def pages() -> dict[str, list[str]]:
    """Two children per page, on two hosts, and a way back."""
    table = {}
    for number in range(2**DEPTH - 1):
        host = "http://b.test" if number % 5 == 4 else ""
        children = [2 * number + 1, 2 * number + 2]
        table[f"{host}/{number}"] = [
            ("http://b.test" if child % 5 == 4 else "http://a.test") + f"/{child}" for child in children
        ] + ["/0", "/1"]
    return table


NARROW = Scope(max_depth=2)
WIDE = {
    "deeper": Scope(max_depth=5),
    "any host": Scope(mode="any", max_depth=2),
    "both": Scope(mode="any", max_depth=5),
    "unlimited": Scope(mode="any", max_depth=-1),
}


async def crawled(world: World, scope: Scope) -> set[str]:
    """The stored URLs under this scope."""
    world.crawl("http://a.test/0", scope=scope)
    world.run()
    check(world.scheduler.dispatcher)
    return {url for url, row in world.outcomes().items() if row == "stored"}


def later(world: World, directory) -> World:
    """The same directory after a restart."""
    found = World(directory, world.web, ManualClock(world.clock.now(), world.clock.monotonic()))
    found.rows = world.rows
    return found


@pytest.mark.parametrize("when", ["running", "finished", "resumed", "snapshot"])
@pytest.mark.parametrize("scope", WIDE.values(), ids=WIDE)
async def test_applied_later_equals_applied_at_once(tmp_path, scope, when):
    """While the job runs, when it has finished, after a restart, with a snapshot before it."""
    config = {"segment_bytes": 2000} if when == "snapshot" else {}
    once = await World(tmp_path / "once", site(pages())).start()
    wanted = await crawled(once, scope)
    await once.scheduler.close()
    world = await World(tmp_path / "later", site(pages()), **config).start()
    world.crawl("http://a.test/0", scope=NARROW)
    if when == "running":
        world.clock.advance(4.5)
        assert not world.done
    else:
        world.run()
    if when in ("resumed", "snapshot"):
        await world.scheduler.close()
        world = await later(world, tmp_path / "later").start()
    assert await crawled(world, scope) == wanted
    await world.scheduler.close()


async def test_what_is_held_is_bounded_and_counted(tmp_path, monkeypatch):
    """At most three links: the others are counted, also after a restart."""
    monkeypatch.setattr(held_links, "LIMIT", 3)
    world = await World(tmp_path, site(pages())).start()
    await crawled(world, NARROW)
    job = world.scheduler.frontier.jobs["t"]
    assert len(job.refused.held) == 3
    assert job.refused.held.lost > 0
    await world.scheduler.close()


async def test_a_shorter_path_wins(tmp_path):
    """A link that is held as too deep, and later found nearer, is fetched at once; nothing is left of it."""
    web = {"/0": ["/1", "/a"], "/1": ["/2"], "/2": ["/x"], "/a": ["/x"], "/x": []}
    world = await World(tmp_path, site(web)).start()
    assert await crawled(world, Scope(max_depth=2)) == {f"http://a.test{path}" for path in web}
    assert admission.admit_held(world.scheduler.frontier, world.scheduler.frontier.jobs["t"]) == 0
    await world.scheduler.close()
