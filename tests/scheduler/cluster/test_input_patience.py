"""The scheduler reads its inputs in larger batches only where no host waits for them."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel.documents.job_schema import Host, Politeness
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import FRONTIER
from nephila.scheduler.cluster import scheduler
from nephila.scheduler.cluster.input_patience import TURN_S, InputPatience

from tests.fake_kafka import FakeKafka, FakeKafkaBus
from tests.jobs import crawl_job
from tests.scheduler.cluster.cluster_rig import World, web


@pytest.fixture
def bus() -> FakeKafkaBus:
    """Keeps what is stated of groups."""
    return FakeKafkaBus(FakeKafka(), ManualClock(), "m")


def test_the_least_delay_of_all_jobs_counts(bus):
    """One job whose hosts wait for nothing but their outcomes ends the patience of all, until it is deleted."""
    patience = InputPatience(bus, "g")
    patience.on_job(crawl_job("slow", politeness=Politeness(delay="1s")))
    assert bus.patient == {"g": True}
    fast = crawl_job("fast", politeness=Politeness(delay="0"))
    patience.on_job(fast)
    assert bus.patient == {"g": False}
    patience.on_job(msgspec.structs.replace(fast, deleted=True))
    assert bus.patient == {"g": True}


def test_the_delay_of_a_single_host_counts(bus):
    """It may be shorter than that of its job."""
    patience = InputPatience(bus, "g")
    patience.on_job(crawl_job("j", politeness=Politeness(delay="1s", hosts=[Host(host="a.example", delay="100ms")])))
    assert not bus.patient.get("g")


def test_without_a_job_there_is_no_patience(bus):
    """The first outcomes of a job come before its patience."""
    patience = InputPatience(bus, "g")
    job = crawl_job("j", politeness=Politeness(delay="1s"))
    patience.on_job(job)
    patience.on_job(msgspec.structs.replace(job, deleted=True))
    assert bus.patient == {"g": False}


async def test_inputs_that_no_host_waits_for_share_the_log_record_of_the_next_turn(tmp_path, monkeypatch):
    """The pauses of hosts stay as they are."""
    crawled = {}
    for name, turn_s in (("shared", TURN_S), ("alone", 0.0)):
        monkeypatch.setattr(scheduler, "TURN_S", turn_s)
        world = World(tmp_path / name, web(6, 9), took_s=0.3)
        await world.start("a")
        await world.give("a")
        world.submit(*(f"http://h{host}.test/0" for host in range(6)))
        await world.run(12.0)
        world.check()
        records = sum(len(world.broker.all(FRONTIER, p)) for p in range(world.broker.partitions))
        crawled[name] = sorted(world.rows), records
    assert crawled["shared"][0] == crawled["alone"][0]
    assert crawled["shared"][1] < 0.8 * crawled["alone"][1], crawled


async def test_inputs_of_a_job_whose_hosts_wait_are_committed_at_once(tmp_path):
    world = World(tmp_path, web(1, 3))
    await world.start("a")
    await world.give("a")
    world.submit("http://h0.test/0", delay_s=0.4)
    await world.settle()
    assert [fetch.url for fetch in world.fetches] == ["http://h0.test/0"]
