"""The control of a crawl is made with its first client or after some seconds; curves begin at the start in any case."""

import pytest
from nephila.programs.control_port import Parts
from nephila.storage.config import StorageConfig
from nephila_control.event_types import ListEvents
from nephila_control.local import backend
from nephila_control.program_control import PATIENCE_S, CrawlControl

from tests.scheduler.world import World, site

PAGES = {"/0": ["/1", "/2"], "/1": [], "/2": []}


@pytest.fixture
def backends(monkeypatch):
    """The backends that were made."""
    made = []

    class Backend(backend.LocalBackend):
        def __init__(self, *values, **more):
            super().__init__(*values, **more)
            made.append(self)

    monkeypatch.setattr(backend, "LocalBackend", Backend)
    return made


@pytest.fixture
async def world(tmp_path):
    """A crawl with one URL queued."""
    world = await World(tmp_path / "frontier", site(PAGES)).start()
    world.crawl("http://a.test/0")
    return world


@pytest.fixture
def control(tmp_path, world):
    async def metrics():
        return b"", "text/plain"

    control = CrawlControl(
        Parts(world.bus, world.clock, world.scheduler), StorageConfig(directory=tmp_path), None, None, metrics
    )
    control.note()
    return control


async def test_a_short_crawl_has_none(world, control, backends):
    world.clock.advance(PATIENCE_S - 1)
    control.note()
    assert backends == []


async def test_a_crawl_that_goes_on_gets_it_once(world, control, backends):
    for _ in range(3):
        world.clock.advance(PATIENCE_S)
        control.note()
    assert len(backends) == 1


async def test_curves_of_a_late_backend_begin_at_the_start(world, control, backends):
    start = world.clock.now()
    world.clock.advance(PATIENCE_S)
    control.note()
    series = backends[0].series.read(None, [], world.clock)
    assert [sample.at for sample in series.samples[:1]] == pytest.approx([start], abs=0.01)
    assert backends[0].events.read(ListEvents()).events[-1].at == start
