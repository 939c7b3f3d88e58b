"""The scheduler reads its inputs in larger batches only where no host waits for them."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel.documents.job_schema import Host, Politeness
from nephila.kernel.runtime.clock import ManualClock
from nephila_cluster.scheduler.input_patience import InputPatience

from tests.fake_kafka import FakeKafka, FakeKafkaBus
from tests.jobs import crawl_job


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
