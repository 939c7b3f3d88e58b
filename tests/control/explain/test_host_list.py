"""The hosts of a frontier, and why each waits."""

from __future__ import annotations

from nephila_control.explain.host_list import host_list

from tests.scheduler.world import JOB, Answer, World, site


async def world(directory, answers=None, **config):
    """A site of one page, or scripted answers."""
    return await World(directory, answers or site({"/0": []}), **config).start()


async def test_a_host_under_way_and_a_host_that_waits_for_its_delay(tmp_path):
    """Each with its queue and its job."""
    found = await world(tmp_path)
    found.crawl("http://a.test/0", "http://a.test/9")
    (first,) = host_list(found.scheduler.dispatcher, found.clock.monotonic())
    assert (first.name, first.why, first.jobs) == ("a.test", "in_flight", [JOB])
    assert host_list(found.scheduler.dispatcher, found.clock.monotonic(), job="nobody") == []
    assert host_list(found.scheduler.dispatcher, found.clock.monotonic(), search="zz") == []


async def test_a_refusal_is_named_as_the_cause(tmp_path):
    """The pause is that of the refusal, not the delay."""
    found = await world(tmp_path, lambda request: Answer(status=503))
    found.crawl("http://a.test/0")
    found.run(2.0)
    (host,) = host_list(found.scheduler.dispatcher, found.clock.monotonic())
    assert host.why in ("refused", "robots")
    assert host.wait_s > 0
