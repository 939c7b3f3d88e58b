"""A person pauses a host, lets it go on, and leaves more time between its requests."""

from __future__ import annotations

from itertools import pairwise

from nephila_control.explain.host_list import HostQuery, host_list

from tests.scheduler.world import Answer, World, site

PAGES = [f"http://a.test/{number}" for number in range(40)]


async def world(directory, answers=None, **config):
    """Forty pages on one host, one second apart."""
    scripted = await World(directory, answers or site({f"/{number}": [] for number in range(40)}), **config).start()
    scripted.crawl(*PAGES)
    scripted.run(5.0)
    return scripted


def listed(scripted):
    """The host of the pages."""
    (host,) = host_list(scripted.scheduler.dispatcher, scripted.clock.monotonic(), HostQuery(name="a.test"))
    return host


async def test_a_paused_host_is_not_fetched_from_until_its_pause_ends(tmp_path):
    scripted = await world(tmp_path)
    assert scripted.scheduler.change_host_pace("a.test", "pause", 600.0)
    scripted.run(2.0)
    fetches = len(scripted.fetched)
    assert listed(scripted).why == "held"
    assert 590 < listed(scripted).held_s <= 600
    paused_at = scripted.clock.monotonic()
    scripted.run(590.0)
    assert len(scripted.fetched) == fetches
    scripted.run(700.0)
    assert scripted.fetched[fetches].start >= paused_at + 600


async def test_a_pause_outlives_a_restart(tmp_path):
    scripted = await world(tmp_path)
    scripted.scheduler.change_host_pace("a.test", "pause", 600.0)
    scripted.scheduler.change_host_pace("a.test", "delay", 30.0)
    scripted.run(2.0)
    await scripted.scheduler.close()
    again = await World(tmp_path, scripted.web, scripted.clock).start()
    assert (listed(again).why, listed(again).least_delay_s) == ("held", 30.0)
    again.run(400.0)
    assert not again.fetched


async def test_a_retry_ends_a_pause_after_the_delay_of_the_host(tmp_path):
    scripted = await world(tmp_path)
    scripted.scheduler.change_host_pace("a.test", "pause", 600.0)
    scripted.run(2.0)
    fetches, now = len(scripted.fetched), scripted.clock.monotonic()
    assert scripted.scheduler.change_host_pace("a.test", "retry", 0.0)
    scripted.run(3.0)
    assert len(scripted.fetched) > fetches
    assert 1.0 <= scripted.fetched[fetches].start - now < 1.5
    assert listed(scripted).held_s == 0


async def test_a_retry_ends_the_back_off_of_a_host_that_refused(tmp_path):
    refuses = True
    scripted = await world(tmp_path, lambda request: Answer(status=503 if refuses else 200))
    assert listed(scripted).why in ("refused", "robots")
    assert listed(scripted).wait_s > 20
    refuses, fetches = False, len(scripted.fetched)
    scripted.scheduler.change_host_pace("a.test", "retry", 0.0)
    scripted.run(10.0)
    assert len(scripted.fetched) > fetches + 3


async def test_a_longer_delay_holds_for_every_request_and_is_taken_back(tmp_path):
    scripted = await world(tmp_path)
    scripted.scheduler.change_host_pace("a.test", "delay", 10.0)
    scripted.run(60.0)
    starts = [fetch.start for fetch in scripted.fetched][-4:]
    assert all(later - earlier > 9.9 for earlier, later in pairwise(starts))
    assert listed(scripted).delay_s == 10.0
    scripted.scheduler.change_host_pace("a.test", "delay", 0.0)
    fetches = len(scripted.fetched)
    scripted.run(20.0)
    assert len(scripted.fetched) > fetches + 8


async def test_a_shorter_delay_than_that_of_the_jobs_changes_nothing(tmp_path):
    scripted = await world(tmp_path)
    scripted.scheduler.change_host_pace("a.test", "delay", 0.1)
    scripted.run(10.0)
    starts = [fetch.start for fetch in scripted.fetched][-4:]
    assert all(later - earlier > 0.99 for earlier, later in pairwise(starts))


async def test_a_host_without_queued_urls_is_idle_and_its_delay_is_not_forgotten(tmp_path):
    scripted = await World(tmp_path, site({"/0": []}), hot_hosts=1).start()
    scripted.crawl("http://a.test/0")
    scripted.run(30.0)
    scripted.scheduler.change_host_pace("a.test", "delay", 30.0)
    scripted.run(30.0)
    scripted.crawl(*(f"http://h{number}.test/" for number in range(5)))
    scripted.run(30.0)
    host = scripted.scheduler.frontier.hosts.find("a.test")
    assert host is not None
    assert host.pace.least_delay_s == 30.0
    assert listed(scripted).why == "idle"
    assert not scripted.scheduler.change_host_pace("z.test", "retry", 0.0)
