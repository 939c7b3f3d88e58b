"""The hosts of a frontier, and why each waits."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import Seed
from nephila.kernel.topics import SEEDS
from nephila_control.explain.host_list import HostQuery, HostRows, first_rows, host_list, host_rows

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
    assert host_list(found.scheduler.dispatcher, found.clock.monotonic(), HostQuery(jobs=["nobody"])) == []
    assert host_list(found.scheduler.dispatcher, found.clock.monotonic(), HostQuery(search="zz")) == []


async def test_a_refusal_is_named_as_the_cause(tmp_path):
    """The pause is that of the refusal, not the delay."""
    found = await world(tmp_path, lambda request: Answer(status=503))
    found.crawl("http://a.test/0")
    found.run(2.0)
    (host,) = host_list(found.scheduler.dispatcher, found.clock.monotonic())
    assert host.why in ("refused", "robots")
    assert host.wait_s > 0


async def test_a_host_that_refuses_for_five_minutes_is_reported_until_it_answers(tmp_path):
    """Since its first refusal, with its queue."""
    refuses = True

    def web(request):
        return Answer(status=503 if refuses else 200)

    scripted = await world(tmp_path, web)
    scripted.crawl(*(f"http://a.test/{number}" for number in range(30)))
    scripted.run(2.0)
    first = scripted.fetched[0].end - scripted.clock.monotonic() + scripted.clock.now()
    assert scripted.scheduler.refusing_hosts() == []
    scripted.clock.advance(400.0)
    (host,) = scripted.scheduler.refusing_hosts()
    assert (host.host, host.since) == (
        "a.test",
        pytest.approx(first, abs=1),
    )
    assert host.queued > 0
    refuses = False
    scripted.run(4000.0)
    assert scripted.scheduler.refusing_hosts() == []


async def test_a_host_that_refuses_without_queued_urls_is_not_reported(tmp_path):
    scripted = await world(tmp_path, lambda request: Answer(status=503))
    scripted.crawl("http://a.test/0")
    scripted.run()
    scripted.clock.advance(1000)
    assert scripted.scheduler.frontier.hosts.refusing_since
    assert scripted.scheduler.refusing_hosts() == []


async def test_hosts_are_listed_by_their_latency_errors_queue_and_name(tmp_path):
    """By the last fetches of each."""
    slow = {"/0": 4.0, "/1": 0.5}

    def web(request):
        answer = Answer(status=404 if request.host == "bad.test" else 200)
        answer.took_s = slow[request.url[-2:]] if request.host == "slow.test" else 0.1
        return answer

    scripted = await world(tmp_path, web)
    scripted.crawl(*(f"http://{name}.test/{number}" for name in ("bad", "good", "slow") for number in range(2)))
    scripted.crawl("http://good.test/2", "http://good.test/3", delay_s=60.0)
    scripted.run(8.0)
    scripted.bus.publish(SEEDS, 0, Seed(JOB, "http://bad.test/8"))
    scripted.bus.publish(SEEDS, 0, Seed(JOB, "http://slow.test/9"))
    scripted.clock.run_due()
    now = scripted.clock.monotonic()

    def listed(sort):
        return [host.name for host in host_list(scripted.scheduler.dispatcher, now, HostQuery(sort=sort))]

    assert listed("name") == ["bad.test", "good.test", "slow.test"]
    assert listed("errors")[0] == "bad.test"
    assert listed("latency")[0] == "slow.test"
    assert listed("queued")[0] == "good.test"
    hosts = {host.name: host.recent for host in host_list(scripted.scheduler.dispatcher, now)}
    assert (hosts["bad.test"].last_status, hosts["bad.test"].error_share) == (404, 1.0)
    assert hosts["slow.test"].latency_p95_s == 4.0


async def test_partitions_share_the_hosts_that_are_looked_at_and_their_rows_are_merged(tmp_path):
    """A host of two lists, while its partition moves, is listed once."""
    scripted = await world(tmp_path, lambda request: Answer(status=200))
    scripted.crawl(
        *(f"http://h{number}.test/{page}" for number in range(6) for page in range(number + 1)), delay_s=60.0
    )
    scripted.run(5.0)
    now, dispatcher = scripted.clock.monotonic(), scripted.scheduler.dispatcher
    query = HostQuery(sort="queued", limit=2)
    rows = host_rows([dispatcher, dispatcher], now, query)
    assert ([host.name for host in rows.hosts], rows.total) == (["h5.test", "h4.test"], 10)
    assert len(host_list(dispatcher, now, looked_at=3)) == 3
    assert first_rows([], query) == HostRows(hosts=[], total=0)
    assert len(host_rows([dispatcher], now, HostQuery(jobs=[JOB, "nobody"])).hosts) == 5
    assert host_rows([dispatcher], now, HostQuery(jobs=[])).hosts == []


async def test_a_whole_name_is_found_behind_the_hosts_that_are_looked_at(tmp_path):
    scripted = await world(tmp_path, lambda request: Answer(status=200))
    scripted.crawl(*(f"http://h{number}.test/{page}" for number in range(9) for page in range(2)), delay_s=60.0)
    scripted.run(5.0)
    now, dispatcher = scripted.clock.monotonic(), scripted.scheduler.dispatcher
    first = host_list(dispatcher, now, looked_at=1)
    assert len(first) == 1
    other = "h7.test" if first[0].name != "h7.test" else "h6.test"
    assert [host.name for host in host_list(dispatcher, now, HostQuery(search=other), looked_at=1)] == [other]
    assert host_list(dispatcher, now, HostQuery(search=other[:-1]), looked_at=1) == []
