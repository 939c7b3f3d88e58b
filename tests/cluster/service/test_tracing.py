"""One trace through all services of a program, with ids that follow from the URL; which URLs are traced."""

from __future__ import annotations

import asyncio
import random

from nephila.downloader.service import build as build_downloader
from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import JOBS, SEEDS
from nephila.parser.config import ParserConfig
from nephila.parser.service import build as build_parser
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.standalone import build as build_scheduler
from nephila.storage.config import StorageConfig
from nephila.storage.service import build as build_storage
from nephila_cluster.service.tracing import TracedBus, is_traced, provider_of, span_id, trace_id
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.downloader_settings import downloader_config
from tests.e2e.web import page, serve
from tests.jobs import crawl_job


async def crawled(tmp_path, ratio):
    """The spans of a crawl of one page, each service with a traced bus of its own, as over a broker."""
    exporter, clock = InMemorySpanExporter(), SystemClock()
    bus = LocalBus(clock)

    def traced(service):
        provider = provider_of(service, f"{service}-0", SimpleSpanProcessor(exporter))
        return TracedBus(bus, clock, ratio, provider)

    with serve(lambda request: page()) as web:
        storage = build_storage(StorageConfig(directory=tmp_path), traced("storage"), clock)
        parser = build_parser(ParserConfig(), traced("parser"), clock, with_judge=False)
        config = downloader_config(allow_private=True, host_map=(web.host_map,), address_gap_s=0.0, per_address=0)
        downloader = build_downloader(config, traced("downloader"), clock)
        scheduler = build_scheduler(SchedulerConfig(directory=str(tmp_path / "f")), traced("scheduler"), clock)
        services = (storage, parser, downloader, scheduler)
        for service in services:
            await service.start()
        bus.publish(JOBS, 0, crawl_job("j", "j", seeds=["http://a.test/"]))
        bus.publish(SEEDS, 0, m.Seed("j", "http://a.test/", "job"))
        async with asyncio.timeout(60):
            while not sum(scheduler.ended("j").values()):
                await storage.flush()
                await asyncio.sleep(0)
        for service in reversed(services):
            await service.close()
    return exporter.get_finished_spans()


async def test_a_url_is_one_trace_with_a_span_per_service(tmp_path):
    """The root lasts from the request to the receipt; the other spans are its children and lie within it, in order."""
    spans = {span.name: span for span in await crawled(tmp_path, 1.0)}
    assert sorted(spans) == ["fetch", "parse", "schedule", "store"]
    assert len({span.context.trace_id for span in spans.values()}) == 1
    root = spans.pop("schedule")
    assert root.parent is None
    assert {span.parent.span_id for span in spans.values()} == {root.context.span_id}
    assert root.start_time <= spans["fetch"].start_time <= spans["parse"].start_time <= spans["store"].start_time
    assert spans["store"].end_time <= root.end_time
    assert spans["parse"].attributes["url.full"] == "http://a.test/"
    assert spans["fetch"].attributes["http.response.status_code"] == 200
    assert spans["fetch"].resource.attributes["service.name"] == "nephila-downloader"


async def test_a_url_that_is_not_chosen_has_no_span(tmp_path):
    assert await crawled(tmp_path, 0.0) == ()


def test_the_choice_follows_from_the_fingerprint():
    """A tenth of random fingerprints; what is chosen at a ratio is chosen at every higher one."""
    rng = random.Random(2)
    keys = [rng.randbytes(16) for _ in range(20_000)]
    chosen = {key for key in keys if is_traced(key, 0.1)}
    assert 1800 < len(chosen) < 2200
    assert all(is_traced(key, 0.5) for key in chosen)
    assert not any(is_traced(key, 0.0) for key in keys)
    assert all(is_traced(key, 1.0) for key in keys)


def test_ids_are_the_same_in_every_program():
    """They depend on job, fingerprint and fetch number alone, and two fetches are two traces."""
    key = ("job", bytes(range(16)), 1)
    assert trace_id(key) == trace_id(("job", bytes(range(16)), 1))
    assert trace_id(key) != trace_id(("job", bytes(range(16)), 2))
    assert span_id(trace_id(key), "fetch") != span_id(trace_id(key), "parse")
