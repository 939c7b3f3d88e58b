"""State that a newer release packed in its own form: novelty starts from zero, quarantines and pace stay."""

from __future__ import annotations

import random
from types import SimpleNamespace

import msgspec
import pytest
from nephila.kernel.messages import HostRecord, HostState, HostUse, HostYield, Quarantine, RobotsTxt
from nephila.native import HostStore
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.host_state import Host
from nephila.scheduler.frontier.host_table import HostTable
from nephila.scheduler.frontier.prepared_hosts import PreparedHosts
from nephila.scheduler.frontier.turn_time import TurnTime
from nephila.scheduler.traps.novelty import NoveltyTracker


def test_what_a_host_has_yielded_is_learned_anew_and_what_was_closed_stays_closed(caplog):
    """A host that a later release has put away: its pace counts, and no line of it is lost."""
    closed = Quarantine("news", "a.test", "/d/", "barren", 1.0, 120)
    job = SimpleNamespace(uid="news", number=3, quarantines={("a.test", "/d/"): closed})
    store = HostStore("")
    state = HostState("a.test", not_before=50.0, pause_s=60.0)
    record = HostRecord(state, yields=[HostYield("3", msgspec.msgpack.encode((9, "another form")))])
    store.set_state(store.host("a.test"), msgspec.msgpack.encode(record))
    hosts = HostTable(store, SchedulerConfig(), {3: job}, PreparedHosts(), TurnTime())
    host = hosts.get_or_create("a.test")
    assert host.pace.not_before == 50.0
    assert host.novelty["news"].closed == {"/d/": closed}
    assert "novelty is measured from zero" in caplog.text


def table(**config: int) -> HostTable:
    time = TurnTime()
    time.begin(100.0, 1_700_000_100.0)
    return HostTable(HostStore(""), SchedulerConfig(**config), {}, PreparedHosts(), time)


def test_objects_beyond_the_limit_are_evicted_down_to_three_quarters_of_it():
    """The oldest first, but none with a fetch in flight and none that is pinned; up to the limit all stay."""
    hosts = table(hot_hosts=20)
    numbers = [hosts.get_or_create(f"h{number}.test").number for number in range(20)]
    hosts.trim(lambda: set(numbers))
    hosts.trim(set)
    assert len(hosts.hot) == 20
    hosts.get_or_create("h20.test")
    hosts.get(numbers[0]).in_flight = 1
    hosts.trim(lambda: {numbers[1]})
    assert list(hosts.hot) == [*numbers[:2], *list(hosts.hot)[2:]]
    assert len(hosts.hot) == 15
    assert numbers[7] not in hosts.hot
    hosts.check()


def test_robots_txt_files_beyond_the_limit_are_evicted_with_their_hosts():
    """Down to three quarters; hosts without a robots.txt stay."""
    hosts = table(hot_robots_bytes=10_000)
    for number in range(40):
        host = hosts.get_or_create(f"h{number}.test")
        if number % 2:
            body = b"User-agent: *\nDisallow: /" + bytes([97 + number % 20]) * 400 + b"%d" % number
            hosts.set_robots(
                host, RobotsTxt(f"http://h{number}.test", host.key, 200, body, 1_700_000_000.0, 1_700_000_900.0)
            )
            host.changed = True
    size = hosts.robots.size_bytes
    assert size > 10_000
    each = size / 20
    hosts.trim(set)
    assert 7_500 - each < hosts.robots.size_bytes <= 7_500
    assert sum(not host.robots for host in hosts.hot.values()) == 20
    again = hosts.get_or_create("h1.test")
    assert not again.robots["http://h1.test"].allows("nephila", "http://h1.test/" + "b" * 400 + "1")
    hosts.check()


def test_an_evicted_host_comes_back_with_its_pace_and_use_and_one_without_state_is_forgotten():
    """The use of a job that was deleted meanwhile does not come back, whatever the name of a later job."""
    hosts = table()
    jobs = {number: SimpleNamespace(uid=uid, number=number, quarantines={}) for number, uid in ((1, "a"), (2, "b"))}
    hosts.numbered = jobs
    busy, idle = hosts.get_or_create("busy.test"), hosts.get_or_create("idle.test")
    busy.pace.after_fetch(100.0, 30.0)
    busy.address = "192.0.2.1"
    for uid in "ab":
        busy.uses[uid] = HostUse(uid, 3, 100, 1.0)
    closed = hosts.get_or_create("closed.test")
    closed.novelty["b"] = NoveltyTracker("b", "closed.test")
    closed.novelty["b"].restore(Quarantine("b", "closed.test", "/d/", "barren", 1.0, 120))
    for host in (busy, closed, idle):
        host.changed = True
        hosts.evict(host)
    assert hosts.written_bytes == sum(len(hosts.store.state(host.number)) for host in (busy, closed)) > 0
    hosts.checkpointed()
    assert (len(hosts), hosts.written_bytes, hosts.find("idle.test"), hosts.hot) == (2, 0, None, {})
    del jobs[1]
    jobs[3] = SimpleNamespace(uid="a", number=3, quarantines={})
    back = hosts.find("busy.test")
    assert back is not busy
    assert (round(back.pace.not_before, 3), back.address, back.uses) == (
        130.005,
        "192.0.2.1",
        {"b": HostUse("b", 3, 100, 1.0)},
    )
    assert hosts.get(busy.number) is back
    assert set(hosts.get_or_create("closed.test").novelty["b"].closed) == {"/d/"}


class Twins:
    """One host in two tables: an object in the first; in the second bytes of the store between any two operations."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.config = SchedulerConfig()
        self.jobs = {n: SimpleNamespace(uid=uid, number=n, quarantines={}) for n, uid in ((1, "a"), (2, "b"))}
        self.times = TurnTime(), TurnTime()
        self.tables = [HostTable(HostStore(""), self.config, self.jobs, PreparedHosts(), time) for time in self.times]
        self.now = 100.0

    def hosts(self) -> list[Host]:
        return [hosts.get_or_create("www.a.test") for hosts in self.tables]

    def step(self) -> None:
        """Let time pass, do the same to both hosts, and pack the second one."""
        self.now += self.rng.choice([0.0, 0.5, 30.0, 300.0, 40_000.0])
        for time in self.times:
            time.begin(self.now, 1_700_000_000.0 + self.now)
        operation = self.rng.choice([self.fetched, self.refused, self.paced, self.use, self.robots, self.closed])
        draw = self.rng.randrange(1 << 30)
        for hosts, host in zip(self.tables, self.hosts(), strict=True):
            operation(hosts, host, random.Random(draw))
            host.changed = True
        self.tables[1].evict(self.tables[1].get_or_create("www.a.test"))

    def fetched(self, _: HostTable, host: Host, rng: random.Random) -> None:
        host.pace.took_s = rng.choice([0.25, 8.0])
        host.address = f"192.0.2.{rng.randrange(9)}"
        host.pace.after_answer(self.config, self.now)
        host.pace.after_fetch(self.now, rng.choice([0.0, 1.0, 60.0]))

    def refused(self, _: HostTable, host: Host, rng: random.Random) -> None:
        passing = rng.random() < 0.5
        host.pace.after_refusal(self.now, rng.choice([0.0, 0.0, 90.0]), self.config, rng, passing, rng.randrange(3))

    def paced(self, _: HostTable, host: Host, rng: random.Random) -> None:
        choice = rng.randrange(3)
        if choice == 0:
            host.pace.hold(self.now, 500.0, 1.0)
        elif choice == 1:
            host.pace.free(self.now, 1.0)
        else:
            host.pace.least_delay_s = rng.choice([0.0, 5.0])

    def use(self, _: HostTable, host: Host, rng: random.Random) -> None:
        uid = rng.choice("ab")
        before = host.uses.get(uid, HostUse(uid))
        host.uses[uid] = HostUse(uid, before.pages + 1, before.bytes + 100)

    def robots(self, hosts: HostTable, host: Host, rng: random.Random) -> None:
        body = rng.choice([b"User-agent: *\nDisallow: /x\nCrawl-delay: 9", b"User-agent: *\nDisallow: /"])
        utc, ttl = 1_700_000_000.0 + self.now, rng.choice([600.0, 86_400.0])
        hosts.set_robots(host, RobotsTxt("http://www.a.test", host.key, 200, body, utc, utc + ttl))

    def closed(self, _: HostTable, host: Host, rng: random.Random) -> None:
        place = f"/{rng.randrange(3)}/"
        tracker = host.novelty.setdefault("b", NoveltyTracker("b", host.key))
        tracker.restore(Quarantine("b", host.key, place, "barren", 1.0, 120))

    def facts(self, hosts: HostTable, host: Host) -> tuple[object, ...]:
        """The facts that decide about the next fetch. An instant that is over decides nothing."""
        pace = host.pace
        origins = [origin for origin in host.robots.values() if origin.expires > self.now]
        robots = [(round(o.expires, 3), o.allows("nephila", "http://www.a.test/x")) for o in origins]
        return (
            round(max(pace.certain_at, self.now), 3), pace.backoff_s, pace.least_delay_s,
            round(pace.refused_at, 3) if pace.backoff_s else None, pace.answered if pace.backoff_s else None,
            sorted(host.uses.items()), {uid: dict(part.closed) for uid, part in host.novelty.items()}, robots,
            round(max(pace.held_until, self.now), 3), host.crawl_delay_s if origins else 0.0,
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_a_host_that_is_bytes_between_its_fetches_is_paced_as_one_that_is_an_object(seed: int) -> None:
    """Delay, pauses, back-off, budgets, robots.txt and quarantines are the same after any operations."""
    twins = Twins(seed)
    for _ in range(250):
        twins.step()
        kept, packed = map(twins.facts, twins.tables, twins.hosts())
        assert packed == kept
        twins.tables[1].check()
