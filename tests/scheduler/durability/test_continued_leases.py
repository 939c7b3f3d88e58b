"""Leases of the previous owner of a partition: each state that the log may hold continues, and is published again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.messages import (
    CrawlJob,
    FetchKind,
    FrontierCommit,
    FrontierSnapshot,
    LeasedUrl,
    Outcome,
    QueuedUrl,
    Receipt,
    Record,
)
from nephila.native import HostStore, parse_url
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.continued_leases import CATCH_UP_S
from nephila.scheduler.durability.recovery import restore
from nephila.scheduler.durability.restored import Restored
from nephila.scheduler.durability.snapshots import snapshots
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import Frontier, PartitionSlice
from nephila.scheduler.frontier.in_flight import DELETED, LifeState
from nephila.scheduler.jobs.queue_entry import Entry, pack
from nephila.scheduler.jobs.seen import new_seen

from tests.jobs import crawl_job
from tests.queue_rows import queue_row
from tests.scheduler.deployments import deployed
from tests.scheduler.invariants import check

NOW, UTC = 50.0, 1_800_000_000.0
CONFIG = SchedulerConfig()
LONGEST_S = CONFIG.start_by_s + CONFIG.lease_s
ADDRESS = "192.0.2.1"
ROBOTS = "http://robots.test/robots.txt"


def url_of(host: str) -> str:
    return f"http://{host}.test/page"


def key_of(host: str) -> bytes:
    return parse_url(url_of(host)).fingerprint


def queued(host: str, job: str = "t") -> QueuedUrl:
    return queue_row(job, key_of(host), url_of(host), f"{host}.test", depth=2)


def leased(host: str, job: str = "t", until_s: float = 100.0, **state: Any) -> LeasedUrl:
    """The second attempt, with a lease that ends `until_s` after the takeover."""
    return LeasedUrl(key_of(host), job, f"{host}.test", 2, UTC + until_s, ADDRESS, **state)


def row(host: str) -> Record:
    return Record("t", key_of(host), url_of(host), 1, 2, Outcome.FAILED)


def job(uid: str, generation: int = 1, **spec: Any) -> CrawlJob:
    return crawl_job(uid, uid, generation, [], Scope(mode="any", max_depth=-1), **spec)


def taken_over(
    directory: Path, *parts: dict[str, Any], through_a_snapshot: bool = False
) -> tuple[Dispatcher, Restored]:
    """A partition restored from commits with these parts; or from the snapshot of the owner between."""
    commits = [FrontierCommit(0, 7, number, **part) for number, part in enumerate(parts, 1)]
    entries: Iterable[FrontierSnapshot | FrontierCommit] = commits
    if through_a_snapshot:
        between, _ = restored(directory, commits)
        entries = list(snapshots(between))
    return restored(directory, entries)


def restored(directory: Path, entries: Iterable[FrontierSnapshot | FrontierCommit]) -> tuple[Dispatcher, Restored]:
    name = str(directory)
    config = msgspec.structs.replace(CONFIG, partitions=1, directory=name)
    frontier = Frontier(
        config, HostStore(name), lambda number: new_seen(name, number), **deployed(PartitionSlice(0, 1))
    )
    dispatcher = Dispatcher(frontier)
    return dispatcher, restore(dispatcher, entries, NOW, UTC)


ALL_STATES = (
    {"jobs": [job("t"), job("gone")]},
    {"queued": [queued(host) for host in ("leased", "fetched", "ending", "receipted", "early")]},
    {"queued": [queued("deleted", "gone")]},
    {
        "leased": [
            leased("leased", until_s=90.0),
            leased("fetched"),
            leased("ending"),
            leased("receipted"),
            leased("early", until_s=60.0),
            leased("deleted", "gone"),
            LeasedUrl(
                parse_url(ROBOTS).fingerprint,
                *("", "robots.test", 1, UTC + 75.0, ADDRESS),
                pack(Entry(parse_url(ROBOTS).fingerprint, url=ROBOTS)),
            ),
        ]
    },
    {"leased": [leased("fetched", landed=True), leased("ending", landed=True, record=row("ending"))]},
    {"leased": [leased("receipted", receipt=Receipt(key_of("receipted"), 1, Outcome.STORED))]},
    {"jobs": [job("gone", 2, deleted=True)]},
)


@pytest.mark.parametrize("through_a_snapshot", [False, True], ids=["from the log", "from a snapshot"])
def test_every_state_of_an_outstanding_url_continues(tmp_path: Path, through_a_snapshot: bool) -> None:
    """Leased, fetched, ending, with an early receipt, of a deleted job, robots.txt: in the state that it had. Rows and
    requests that the previous owner may not have published are published again, requests in the order of their
    leases."""
    dispatcher, found = taken_over(tmp_path, *ALL_STATES, through_a_snapshot=through_a_snapshot)
    frontier = dispatcher.frontier
    again = found.to_republish
    assert [(partition, record.url) for partition, record in again.records] == [(0, url_of("ending"))]
    assert [request.url for _, request in again.requests] == [
        url_of("early"),
        ROBOTS,
        url_of("leased"),
        url_of("receipted"),
    ]
    assert {(r.attempt, r.fetch_no, r.address) for _, r in again.requests if r.job} == {(2, 1, ADDRESS)}
    assert [r.lease_until - UTC for _, r in again.requests] == [60.0, 75.0, 90.0, 100.0]
    assert [r.kind for _, r in again.requests if not r.job] == [FetchKind.ROBOTS]
    states = {
        (uid, waiting.host.key): (waiting.state, waiting.host.in_flight)
        for (uid, _), waiting in frontier.in_flight.urls.items()
    }
    assert states == {
        ("t", "leased.test"): (LifeState.LEASED, 1),
        ("t", "fetched.test"): (LifeState.FETCHED, 0),
        ("t", "ending.test"): (LifeState.ENDING, 0),
        ("t", "receipted.test"): (LifeState.LEASED, 1),
        ("t", "early.test"): (LifeState.LEASED, 1),
        ("", "robots.test"): (LifeState.LEASED, 1),
        (DELETED + "gone", "deleted.test"): (LifeState.LEASED, 1),
    }
    assert {host: until for (_, _), (host, until) in _leases(frontier).items()} == {
        "leased.test": NOW + 90.0,
        "receipted.test": NOW + 100.0,
        "early.test": NOW + 60.0,
        "robots.test": NOW + 75.0,
        "deleted.test": NOW + 100.0,
    }
    assert frontier.jobs["t"].counts.leased == 4
    assert len(frontier.in_flight.leases) == 5
    assert frontier.in_flight.urls["t", key_of("receipted")].receipted is not None
    assert frontier.in_flight.urls[DELETED + "gone", key_of("deleted")].entry.url == url_of("deleted")
    assert frontier.jobs["t"].queue.length == 0


def _leases(frontier: Frontier) -> dict[tuple[str, bytes], tuple[str, float]]:
    outstanding = frontier.in_flight.urls
    return {key: (outstanding[key].host.key, round(until, 3)) for key, until in frontier.in_flight.leases.items()}


@pytest.mark.parametrize(
    ("until_s", "lasts_s"),
    [
        (-1000.0, CATCH_UP_S),
        (0.0, CATCH_UP_S),
        (CATCH_UP_S - 1, CATCH_UP_S),
        (CATCH_UP_S + 1, CATCH_UP_S + 1),
        (LONGEST_S - 1, LONGEST_S - 1),
        (LONGEST_S + 1, LONGEST_S),
        (1e6, LONGEST_S),
    ],
)
def test_a_lease_leaves_time_to_read_outcomes_and_outlasts_no_new_lease(
    tmp_path: Path, until_s: float, lasts_s: float
) -> None:
    """Whatever the clock of the previous owner was."""
    dispatcher, found = taken_over(
        tmp_path, {"jobs": [job("t")]}, {"queued": [queued("a")]}, {"leased": [leased("a", until_s=until_s)]}
    )
    ((_, until),) = _leases(dispatcher.frontier).values()
    assert until == pytest.approx(NOW + lasts_s, abs=1e-3)
    ((_, request),) = found.to_republish.requests
    # The name of the lease stays, so an outcome of the request that was published before still counts.
    assert request.lease_until == UTC + until_s
    assert request.start_by == pytest.approx(UTC + lasts_s - CONFIG.lease_s, abs=1e-3)


def test_a_state_of_a_url_that_has_ended_restores_nothing(tmp_path: Path) -> None:
    """An outcome or receipt that was logged after the end of its URL."""
    late = [leased("a", landed=True), leased("b", receipt=Receipt(key_of("b"), 1, Outcome.STORED))]
    dispatcher, found = taken_over(tmp_path, {"jobs": [job("t")]}, {"leased": late})
    assert len(dispatcher.frontier.in_flight) == 0
    assert (found.to_republish.requests, found.to_republish.records, found.leased) == ([], [], 0)


def test_a_url_that_went_back_to_its_queue_stays_there(tmp_path: Path) -> None:
    """One turn logged the end of its fetch and, because its messages were lost, its new place in the queue."""
    dispatcher, found = taken_over(
        tmp_path,
        {"jobs": [job("t")]},
        {"queued": [queued("a")]},
        {"leased": [leased("a")]},
        {"queued": [queued("a")], "leased": [leased("a", landed=True)]},
    )
    frontier = dispatcher.frontier
    assert (len(frontier.in_flight), frontier.jobs["t"].queue.length, found.urls) == (0, 1, 1)


def test_a_host_in_flight_is_not_ready(tmp_path: Path) -> None:
    """Its second URL was ready in the snapshot that was taken before the lease."""
    url = url_of("a") + "/2"
    second = queue_row("t", parse_url(url).fingerprint, url, "a.test", depth=2)
    commits = [
        FrontierCommit(0, 7, 1, jobs=[job("t")]),
        FrontierCommit(0, 7, 2, queued=[queued("a"), second]),
    ]
    between, _ = restored(tmp_path, commits)
    store = between.frontier.store
    assert [store.ready_at(number) for number in store.ids()] == [NOW]
    entries = [*snapshots(between), FrontierCommit(0, 7, 3, leased=[leased("a")])]
    dispatcher, _ = restored(tmp_path, entries)
    check(dispatcher)
    store = dispatcher.frontier.store
    assert [store.ready_at(number) for number in store.ids()] == [None]
    assert dispatcher.frontier.jobs["t"].queue.length == 1
