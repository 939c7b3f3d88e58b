"""All invariants of a frontier in plain lines: what holds between two turns.

Every seen URL is exactly one of: queued, delayed, outstanding, ended. Every host with queued URLs will be served: it is
in the heap, ready, in flight, in an address queue, or held back for a job or a spent budget.
"""

from __future__ import annotations

from collections import Counter

from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import DELETED, Frontier
from nephila.scheduler.frontier.host_state import Outstanding, OutstandingState
from nephila.scheduler.frontier.job_state import Job
from nephila.scheduler.frontier.queue_entry import unpack


def check(dispatcher: Dispatcher) -> None:
    """Raise AssertionError when an invariant does not hold. O(everything)."""
    frontier = dispatcher.frontier
    frontier.hosts.check()
    frontier.ready.check()
    frontier.prepared.check()
    frontier.addresses.check()
    assert {slot.number for slot in frontier.addresses.waiting()} == set(frontier.waiting_for_address), (
        "address queues and hosts differ"
    )
    outstanding = [waiting for partition in frontier.partitions for waiting in partition.outstanding.values()]
    _check_leases(frontier, outstanding)
    _check_hosts(frontier)
    in_rooms: Counter[int] = Counter()
    for job in frontier.jobs.values():
        in_rooms.update({id(room): job.leased for room in job.rooms})
    for job in frontier.jobs.values():
        assert all(room.in_flight == in_rooms[id(room)] for room in job.rooms), f"{job.uid}: quotas count other leases"
    for job in frontier.jobs.values():
        _check_job(dispatcher, job, [w for w in outstanding if w.job == job.uid])


def _check_leases(frontier: Frontier, outstanding: list[Outstanding]) -> None:
    leased = [w for w in outstanding if w.state is OutstandingState.LEASED]
    assert frontier.outstanding == len(outstanding), (
        f"{frontier.outstanding} outstanding, but {len(outstanding)} listed"
    )
    assert frontier.in_fetch == len(leased), f"{frontier.in_fetch} in fetch, but {len(leased)} leased"
    assert set(frontier.leases) == {(w.job, w.entry.url_key) for w in leased}, "leases and leased URLs differ"
    assert list(frontier.leases.values()) == sorted(frontier.leases.values()), "leases out of order"
    awaited = {(w.job, w.entry.url_key) for w in outstanding if w.state is not OutstandingState.LEASED}
    assert set(frontier.without_receipt) == awaited, "URLs without receipt and those with an outcome differ"
    instants = list(frontier.without_receipt.values())
    assert instants == sorted(instants), "URLs without receipt out of order"
    known = {"", *frontier.jobs}
    assert all(w.job in known or w.job.startswith(DELETED) for w in outstanding), "an outstanding URL has no job"
    in_flight = Counter(id(w.host) for w in leased)
    for host in frontier.hosts.hot.values():
        assert host.in_flight == in_flight[id(host)], f"{host.key}: {host.in_flight} in flight"
    assert all(w.host is frontier.hosts.hot.get(w.host.number) for w in leased), "an active host was evicted"


def _check_hosts(frontier: Frontier) -> None:
    store = frontier.store
    for number in frontier.prepared.by_number:
        host = frontier.hosts.hot.get(number)
        flying = host is not None and host.in_flight
        assert flying or store.queued(number), f"host {number} is prepared for no page"
        scheduled = store.ready_at(number)
        assert scheduled is None or frontier.prepared.ready_at(number) == scheduled, f"host {number} is late"
    parked = {number for job in frontier.jobs.values() for number in job.waiting_hosts}
    for number in store.ids():
        name = store.name(number)
        scheduled, ready = store.ready_at(number) is not None, number in frontier.ready
        waiting_for_address = number in frontier.waiting_for_address
        assert scheduled + ready + waiting_for_address <= 1, f"{name} is in two places"
        host = frontier.hosts.hot.get(number)
        if ready and host is not None:
            assert host.pace.not_before <= frontier.now, f"{name} would be taken before its pace allows"
        if not store.queued(number) or scheduled or ready or waiting_for_address or number in parked:
            continue
        users = [frontier.numbered[job] for job, _ in store.jobs(number)]
        flying = host is not None and host.in_flight
        stalled = all(number in job.over_budget_hosts for job in users)
        assert flying or stalled, f"{name}: queued, and nothing will ever take it"


def _check_job(dispatcher: Dispatcher, job: Job, mine: list[Outstanding]) -> None:
    store = dispatcher.frontier.store
    queued: list[bytes] = []
    for number in store.hosts_of(job.number):
        entries = [unpack(packed) for _, packed in store.items(number, job.number)]
        queued += [entry.url_key for entry in entries]
    queued += [unpack(packed).url_key for _, _, uid, packed in dispatcher.delayed() if uid == job.uid]
    uid = job.uid
    assert job.queued == len(queued), f"{uid}: {job.queued} queued, but {len(queued)} in queues"
    taken = sum(w.state is not OutstandingState.ENDING for w in mine)
    assert job.leased == taken, f"{uid}: {job.leased} leased, but {taken} outstanding as pages"
    keys = queued + [w.entry.url_key for w in mine]
    assert len(keys) == len(set(keys)), f"{uid}: a URL is in two places"
    assert all(key in job.seen for key in keys), f"{uid}: a URL was not seen"
    assert job.priority_refetch | job.reserved <= set(queued), f"{uid}: a URL with a reservation is not queued"
    assert not job.priority_refetch & job.reserved, f"{uid}: a URL has two reservations"
    ended = sum(job.ended.values())
    assert len(job.seen) == len(keys) + ended, f"{uid}: {len(job.seen)} seen, {len(keys)} left, {ended} ended"
