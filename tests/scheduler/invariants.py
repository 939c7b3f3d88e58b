"""All invariants of a frontier in plain lines: what holds between two turns.

Every seen URL is exactly one of: queued, delayed, in flight (`InFlight.check`), ended. Every host with queued URLs will
be served: it is in the heap, ready, in flight, in an address queue, or held back for a job or a spent budget.
"""

from __future__ import annotations

from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import unpack


def check(dispatcher: Dispatcher) -> None:
    """Raise AssertionError when an invariant does not hold. O(everything)."""
    frontier = dispatcher.frontier
    frontier.hosts.check()
    frontier.readiness.ready.check()
    frontier.readiness.prepared.check()
    frontier.addresses.check()
    assert {slot.number for slot in frontier.addresses.waiting()} == set(frontier.readiness.waiting_for_address), (
        "address queues and hosts differ"
    )
    frontier.in_flight.check(frontier.hosts.hot)
    _check_hosts(frontier)
    for job in frontier.jobs.values():
        _check_job(dispatcher, job)


def _check_hosts(frontier: Frontier) -> None:
    store = frontier.store
    for number in frontier.readiness.prepared.by_number:
        host = frontier.hosts.hot.get(number)
        flying = host is not None and host.in_flight
        assert flying or store.queued(number), f"host {number} is prepared for no page"
        scheduled = store.ready_at(number)
        assert scheduled is None or frontier.readiness.prepared.ready_at(number) == scheduled, f"host {number} is late"
    parked = {number for job in frontier.jobs.values() for number in job.queue.waiting_hosts}
    for number in store.ids():
        name = store.name(number)
        scheduled, ready = store.ready_at(number) is not None, number in frontier.readiness.ready
        waiting_for_address = number in frontier.readiness.waiting_for_address
        assert scheduled + ready + waiting_for_address <= 1, f"{name} is in two places"
        host = frontier.hosts.hot.get(number)
        if ready and host is not None:
            due_at = frontier.lead.due_at(host.pace.not_before)
            assert due_at <= frontier.time.now, f"{name} would be taken before its pace allows"
        if not store.queued(number) or scheduled or ready or waiting_for_address or number in parked:
            continue
        users = [frontier.jobs.numbered[job] for job, _ in store.jobs(number)]
        flying = host is not None and host.in_flight
        stalled = all(job.queue.is_spent(number) for job in users)
        assert flying or stalled, f"{name}: queued, and nothing will ever take it"


def _check_job(dispatcher: Dispatcher, job: Job) -> None:
    store = dispatcher.frontier.store
    queued: list[bytes] = []
    for number in store.hosts_of(job.number):
        entries = [unpack(packed) for _, packed in store.items(number, job.number)]
        queued += [entry.url_key for entry in entries]
    queued += [unpack(packed).url_key for _, _, uid, packed in dispatcher.frontier.delayed.items() if uid == job.uid]
    if job.domains is not None:
        job.domains.check()
    uid = job.uid
    assert job.queue.length == len(queued), f"{uid}: {job.queue.length} queued, but {len(queued)} in queues"
    keys = queued + [key for owner, key in dispatcher.frontier.in_flight.urls if owner == uid]
    assert len(keys) == len(set(keys)), f"{uid}: a URL is in two places"
    assert all(key in job.seen for key in keys), f"{uid}: a URL was not seen"
    assert job.budget.priority_refetch | job.budget.reserved <= set(queued), (
        f"{uid}: a URL with a reservation is not queued"
    )
    assert not job.budget.priority_refetch & job.budget.reserved, f"{uid}: a URL has two reservations"
    ended = sum(job.counts.ended.values())
    part = dispatcher.frontier.partition_slice
    # After a growth, the partition that was split counts the URLs that had ended in all its parts.
    if part.base in (0, part.of):
        assert len(job.seen) == len(keys) + ended, f"{uid}: {len(job.seen)} seen, {len(keys)} left, {ended} ended"
