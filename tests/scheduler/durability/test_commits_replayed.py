"""Single commits, replayed into an empty frontier."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
from nephila.kernel.messages import FrontierCommit, HostState, Quarantine, RobotsTxt
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.recovery import open_frontier, restore
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import Frontier

from tests.jobs import crawl_job
from tests.queue_rows import queue_row

NOW, UTC = 50.0, 1_800_000_000.0


def replayed(directory: Path, *commits: FrontierCommit) -> Frontier:
    """A frontier of one partition after these commits, with every host evicted from memory."""
    frontier = open_frontier(SchedulerConfig(directory=str(directory), partitions=1), random.Random(1))
    restore(Dispatcher(frontier), commits, NOW, UTC)
    for host in list(frontier.hosts.hot.values()):
        frontier.hosts.evict(host)
    return frontier


def test_each_kind_of_change_of_a_host_outlives_its_eviction(tmp_path: Path) -> None:
    """A commit may hold a robots.txt, a pace or a quarantine alone."""
    robots = RobotsTxt("http://a.test", "a.test", 200, b"User-agent: *\nDisallow: /x", UTC - 5, UTC + 3600)
    state = HostState("b.test", UTC + 30.0, 60.0)
    quarantine = Quarantine("t", "c.test", "/x/", "nothing new", UTC - 9, 120)
    frontier = replayed(
        tmp_path,
        FrontierCommit(0, 0, 1, jobs=[crawl_job("t", "t", 1)]),
        FrontierCommit(0, 0, 2, robots=[robots]),
        FrontierCommit(0, 0, 3, hosts=[state]),
        FrontierCommit(0, 0, 4, quarantines=[quarantine]),
    )
    assert not frontier.hosts.hot
    hosts = {frontier.store.name(number): frontier.hosts.get(number) for number in frontier.store.ids()}
    assert set(hosts) == {"a.test", "b.test", "c.test"}
    known = hosts["a.test"].robots["http://a.test"]
    assert (known.policy, known.expires) == ("rules", NOW + 3600)
    assert not known.allows("nephila", "http://a.test/x")
    assert hosts["b.test"].pace.not_before == NOW + 30.0
    assert hosts["c.test"].novelty["t"].closed == {"/x/": quarantine}


def test_a_commit_is_applied_once(tmp_path: Path) -> None:
    """A commit with a sequence that was applied already is skipped."""
    commits = [FrontierCommit(0, 0, n, hosts=[HostState(f"h{n}.test", UTC + 30.0, 60.0)]) for n in (1, 2, 2, 1, 3)]
    commits[2].hosts[0].not_before = commits[3].hosts[0].not_before = UTC + 55.0
    frontier = replayed(tmp_path, *commits)
    found = {frontier.store.name(number): frontier.hosts.get(number).pace.not_before for number in frontier.store.ids()}
    assert found == {"h1.test": NOW + 30.0, "h2.test": NOW + 30.0, "h3.test": NOW + 30.0}
    assert frontier.partitions[0].sequence == 3


def test_a_delayed_url_that_is_queued_again_is_queued_once(tmp_path: Path) -> None:
    """The later row of a URL holds: it waits no longer, and it is in one place."""
    url = queue_row("t", b"u" * 16, "http://a.test/", "a.test", depth=1)
    later = msgspec.structs.replace(url, not_before=UTC + 30.0)
    frontier = open_frontier(SchedulerConfig(directory=str(tmp_path), partitions=1), random.Random(1))
    dispatcher = Dispatcher(frontier)
    restore(
        dispatcher,
        [
            FrontierCommit(0, 0, 1, jobs=[crawl_job("t", "t", 1)]),
            FrontierCommit(0, 0, 2, queued=[later]),
            FrontierCommit(0, 0, 3, queued=[url]),
        ],
        NOW,
        UTC,
    )
    assert frontier.store.items(0, frontier.jobs["t"].number) == [(2, url.entry)]
    assert list(dispatcher.frontier.delayed.items()) == []
