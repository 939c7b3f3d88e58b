"""Questions about URLs over a broker: the owner of the partition answers, once, and nobody else; nothing is changed."""

from __future__ import annotations

import msgspec
import pytest
from nephila.kernel.documents.job_schema import Parse, Politeness, Scope
from nephila.kernel.fragment_routes import ROUTE
from nephila.kernel.messages import ExplainQuery, Quarantine, Seed
from nephila.kernel.topics import EXPLAIN_ANSWERS, EXPLAIN_QUERIES, JOBS, SEEDS
from nephila.native import parse_url
from nephila.scheduler.frontier.host_table import novelty_of
from nephila_cluster.scheduler.explain_queries import MAX_HOSTS, WAITING
from nephila_control.explain.host_list import HostQuery, HostRows

from tests.cluster.scheduler.cluster_rig import Site, World, web
from tests.jobs import crawl_job


@pytest.fixture
async def world(tmp_path):
    """Two schedulers with two partitions each, in the middle of a crawl of four sites."""
    world = World(tmp_path, web(4, 7))
    world.submit(*(f"http://h{host}.test/0" for host in range(4)))
    await world.start("a")
    await world.start("b")
    await world.give("a", 0, 1)
    await world.give("b", 2, 3)
    await world.until(8)
    return world


def ask(world, url, job="", left_s=10.0, name="q"):
    """Somebody asks."""
    place = str(world.partition(url)) if url.startswith("http") else "0"
    world.outside.publish(
        EXPLAIN_QUERIES, 0, ExplainQuery(place, name, url, job, world.clock.now() + left_s, "kafka:9092")
    )


async def answers(world, seconds=1.0):
    """All that was answered so far, after a while."""
    await world.run(seconds)
    return world.broker.all(EXPLAIN_ANSWERS, 0)


async def test_the_owner_answers_and_is_named(world):
    """Each URL by who has its partition, with partition and epoch."""
    for host in range(4):
        ask(world, f"http://h{host}.test/6", name=f"q{host}")
    found = {answer.id: answer for answer in await answers(world)}
    assert set(found) == {"q0", "q1", "q2", "q3"}
    for host in range(4):
        url = f"http://h{host}.test/6"
        result = msgspec.json.decode(found[f"q{host}"].explanation)
        owner = world.owner_of(url)
        name = "a" if owner.number < 2 else "b"
        assert (result["url"], result["url_key"], result["job"]) == (url, parse_url(url).fingerprint.hex(), "t")
        assert (result["partition"], result["owner"]) == (owner.number, f"scheduler {name}, epoch {owner.epoch}")
        assert result["state"] in ("waiting", "not_crawled", "never_found")
    world.check()


async def test_what_has_ended_is_sent_to_storage(world):
    """A scheduler has no rows: it says that the URL has ended, and where its row is."""
    await world.until(28)
    ask(world, "http://h0.test/0", job="t")
    (answer,) = await answers(world)
    result = msgspec.json.decode(answer.explanation)
    assert (result["kind"], result["seen"]) == ("seen", True)
    assert "table pages of storage" in result["sentence"]


async def test_expired_questions_hold_no_later_one_up(world):
    """Each is acked when it is read, also one that is not answered."""
    for number in range(250):
        ask(world, "http://h0.test/6", left_s=-1.0, name=f"late{number}")
    await world.run(1.0)
    ask(world, "http://h0.test/6", name="q")
    assert [answer.id for answer in await answers(world)] == ["q"]


async def test_a_question_that_makes_no_sense_is_refused_in_a_line(world):
    """No such job, nothing of it there, no URL."""
    ask(world, "http://h1.test/", job="nobody", name="job")
    ask(world, "http://elsewhere.test/", name="there")
    ask(world, "nonsense", name="url")
    found = {answer.id: answer for answer in await answers(world)}
    assert (found["job"].error, found["job"].usage_error) == ("the system has no job 'nobody'", True)
    assert not found["there"].error
    assert msgspec.json.decode(found["there"].explanation)["kind"] == "unknown"
    assert found["url"].usage_error
    assert found["url"].error.startswith("not a URL that can be crawled")
    assert not found["url"].explanation


async def test_who_asks_too_much_or_waits_no_more_gets_no_answer(world):
    """The oldest of many questions go unanswered, and no scheduler stands still for them; late ones are skipped."""
    ask(world, "http://h0.test/0", left_s=-1.0)
    ask(world, "http://h0.test/0", left_s=1000.0)
    for number in range(5 * WAITING):
        ask(world, "http://h0.test/0", name=str(number))
    found = await answers(world, 5.0)
    assert [answer.id for answer in found] == [str(number) for number in range(4 * WAITING, 5 * WAITING)]


async def test_nobody_answers_for_a_partition_that_nobody_has(world):
    """Its next owner does not answer questions that are over."""
    url = "http://h0.test/0"
    name = "a" if world.partition(url) < 2 else "b"
    world.kill(name)
    ask(world, url, left_s=2.0)
    assert not await answers(world, 3.0)
    other = "b" if name == "a" else "a"
    await world.give(other, *((0, 1) if name == "a" else (2, 3)))
    assert not await answers(world, 1.0)
    ask(world, url)
    assert [answer.error for answer in await answers(world)] == [""]


async def test_a_route_of_a_single_page_application_is_a_page_of_its_own(tmp_path):
    """Where the job says so: what is asked about `#/about` is told of it, not of the page that it is a route of."""
    page = "http://h0.test/"
    world = World(tmp_path, Site({page: [], f"{page}#/about": []}))
    job = crawl_job(
        "t", "t", 1, [], Scope(mode="any", max_depth=0), Politeness(delay="1s"), parse=Parse(follow=[ROUTE])
    )
    world.outside.publish(JOBS, 0, job)
    world.outside.publish(SEEDS, world.partition(page), Seed("t", f"{page}#/about"))
    await world.start("a")
    await world.give("a")
    await world.until(1)
    ask(world, f"{page}#/about", name="route")
    ask(world, page, name="page")
    found = {answer.id: msgspec.json.decode(answer.explanation) for answer in await answers(world)}
    assert (found["route"]["url"], found["route"]["seen"]) == (f"{page}#/about", True)
    assert (found["page"]["url"], found["page"]["seen"]) == (page, False)


def close(world: World, place: str) -> int:
    """A part of h0.test is closed as a trap; returns the partition."""
    owner = world.owner_of("http://h0.test/")
    quarantine = Quarantine("t", "h0.test", place, "nothing new in its last 100 fetches of 100", 1.8e9, 100)
    job, host = owner.frontier.jobs["t"], owner.frontier.hosts.get_or_create("h0.test")
    novelty_of(host, job).restore(quarantine)
    owner.frontier.note_quarantine(job, host, quarantine)
    owner.wake()
    return owner.number


def open_again(world: World, place: str, name: str, job: str = "t") -> None:
    """Somebody says so."""
    url = "http://h0.test/"
    question = ExplainQuery(str(world.partition(url)), name, url, job, world.clock.now() + 10, "kafka:9092", place)
    world.outside.publish(EXPLAIN_QUERIES, 0, question)


async def test_a_part_of_a_host_is_opened_again(world):
    """Explain names the command; the answer comes once, when the log has it, and whoever comes next knows of it."""
    partition = close(world, "/cal/")
    ask(world, "http://h0.test/cal/1", name="closed")
    open_again(world, "/cal/", "open")
    open_again(world, "/cal/", "twice")
    open_again(world, "/none/", "none")
    open_again(world, "/cal/", "nobody", job="nobody")
    found = {answer.id: answer for answer in await answers(world)}
    result = msgspec.json.decode(found["closed"].explanation)
    assert "release it with: nephila jobs release t h0.test /cal/ --bootstrap kafka:9092" in result["sentence"]
    assert (found["open"].released, found["open"].error) == (True, "")
    assert found["twice"].error == "h0.test/cal/ is not in quarantine for 't'"
    assert found["none"].error == "h0.test/none/ is not in quarantine for 't'"
    assert found["nobody"].usage_error
    name = "a" if partition < 2 else "b"
    world.kill(name)
    other = "b" if name == "a" else "a"
    await world.give(other, *((0, 1) if name == "a" else (2, 3)))
    ask(world, "http://h0.test/cal/1", name="after")
    result = msgspec.json.decode((await answers(world))[-1].explanation)
    assert result["trap"]["released"]


async def test_what_is_not_in_the_log_is_not_answered(world):
    """The broker takes nothing, and then the scheduler dies: the place stays closed, and nobody was told otherwise."""
    partition = close(world, "/cal/")
    await world.settle()
    name = "a" if partition < 2 else "b"
    world.members[name][0].slow = True
    open_again(world, "/cal/", "open")
    assert not await answers(world)
    world.kill(name)
    other = "b" if name == "a" else "a"
    await world.give(other, *((0, 1) if name == "a" else (2, 3)))
    open_again(world, "/cal/", "again")
    assert [(answer.id, answer.released) for answer in await answers(world)] == [("again", True)]


async def test_urls_are_forgotten_by_the_owner_of_their_partition_and_after_a_takeover_too(world):
    """The answer comes when it is in the log; the next owner does not know them either."""
    await world.until(28)
    url = "http://h0.test/3"
    partition = world.partition(url)
    query = ExplainQuery(str(partition), "f", url, "t", world.clock.now() + 10.0, forget=[url, "http://h0.test/none"])
    world.outside.publish(EXPLAIN_QUERIES, 0, query)
    (answer,) = await answers(world)
    assert (answer.released, answer.forgotten, answer.open, answer.unknown) == (True, 1, 0, 1)
    name = "a" if partition < 2 else "b"
    world.kill(name)
    await world.give("b" if name == "a" else "a", *((0, 1) if name == "a" else (2, 3)))
    job = world.owner_of(url).frontier.jobs["t"]
    assert parse_url(url).fingerprint not in job.seen
    assert parse_url("http://h0.test/4").fingerprint in job.seen


async def test_an_exclusion_is_tried_in_all_partitions(world):
    """Each scheduler answers once for its own; the crawl goes on."""
    until = world.clock.now() + 10.0
    world.outside.publish(EXPLAIN_QUERIES, 0, ExplainQuery("x", "q", "", "t", until, try_exclude=["/[0-6]$"]))
    found = await answers(world)
    assert sorted(one.partitions for one in found) == [[0, 1], [2, 3]]
    assert all(one.complete and one.looked_at == one.removed for one in found)
    assert sum(one.removed for one in found) > 0
    assert all(len(one.examples) == min(one.removed, 20) for one in found)
    world.check()


async def test_an_exclusion_of_an_unknown_job_removes_nothing_and_a_wrong_one_is_not_answered(world):
    """The control API refuses both."""
    until = world.clock.now() + 10.0
    world.outside.publish(EXPLAIN_QUERIES, 0, ExplainQuery("x", "q", "", "nobody", until, try_exclude=["."]))
    world.outside.publish(EXPLAIN_QUERIES, 0, ExplainQuery("y", "p", "", "t", until, try_exclude=["("]))
    found = await answers(world)
    assert [(one.id, one.removed, one.queued) for one in found] == [("q", 0, 0)] * 2


def pace(world: World, host: str, action: str, seconds: float = 0.0) -> None:
    """Somebody changes the pace of a host."""
    until = world.clock.now() + 10.0
    place = str(world.partition(f"http://{host}/"))
    query = ExplainQuery(place, action, f"http://{host}/", "", until, host_action=action, host_seconds=seconds)
    world.outside.publish(EXPLAIN_QUERIES, 0, query)


async def test_the_owner_of_its_partition_paces_a_host(world):
    """And answers when the change is in its log; what is no action, and an unknown host, is refused."""
    pace(world, "h0.test", "pause", 600.0)
    pace(world, "h0.test", "faster", 1.0)
    pace(world, "nowhere.test", "retry")
    found = {answer.id: answer for answer in await answers(world)}
    host = world.owner_of("http://h0.test/").frontier.hosts.find("h0.test")
    assert (found["pause"].released, host.pace.held_until > world.clock.monotonic()) == (True, True)
    assert found["faster"].usage_error
    assert "not in the frontier" in found["retry"].error


def list_hosts(world: World, query: HostQuery | bytes, url: str = "", name: str = "hosts") -> None:
    """Ask for hosts of all partitions, or for one host."""
    content = query if isinstance(query, bytes) else msgspec.json.encode(query)
    until = world.clock.now() + 10.0
    world.outside.publish(EXPLAIN_QUERIES, 0, ExplainQuery("hosts", name, url, "", until, list_hosts=content))


async def test_each_scheduler_lists_the_hosts_of_its_partitions(world):
    list_hosts(world, HostQuery())
    lists = await answers(world)
    assert sorted(answer.partitions for answer in lists) == [[0, 1], [2, 3]]
    hosts = {}
    for answer in lists:
        rows = msgspec.json.decode(answer.hosts, type=HostRows)
        assert rows.total == len(rows.hosts)
        for host in rows.hosts:
            assert world.partition(f"http://{host.name}/") in answer.partitions
            hosts[host.name] = host
    assert set(hosts) == {f"h{number}.test" for number in range(4)}
    assert {host.why for host in hosts.values()} <= {"address", "delay", "in_flight", "ready"}
    assert all(host.jobs == ["t"] or host.in_flight for host in hosts.values())
    world.check()


async def test_one_host_is_listed_by_the_owner_of_its_partition(world):
    list_hosts(world, HostQuery(name="h1.test"), "http://h1.test/")
    (answer,) = await answers(world)
    assert answer.partitions == [world.partition("http://h1.test/")]
    assert [host.name for host in msgspec.json.decode(answer.hosts, type=HostRows).hosts] == ["h1.test"]


async def test_a_list_of_hosts_is_bounded_and_a_query_that_cannot_be_read_is_not_answered(world):
    """The limit of a stranger's query is cut to that of an answer; the next query is answered."""
    owners = world.members["a"][1].owners.values()
    for owner in owners:
        for number in range(2 * MAX_HOSTS):
            host = owner.frontier.hosts.get_or_create(f"x{number}.test")
            host.in_flight = 1
    for query in (b"{", b'{"sort": "money"}', b"[]"):
        list_hosts(world, query, name="bad")
    list_hosts(world, HostQuery(), "nonsense", name="bad")
    list_hosts(world, HostQuery(limit=1_000_000))
    sizes = {len(msgspec.json.decode(answer.hosts, type=HostRows).hosts) for answer in await answers(world)}
    assert max(sizes) == MAX_HOSTS
    assert {answer.id for answer in await answers(world)} == {"hosts"}
