"""Snapshots: the state that goes into one, and the files that may be deleted once it is durable. `recovery` reads it.

New queues, hosts and seen URLs go into files of their own first; the snapshot names those files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from nephila.kernel.messages import (
    DeletedJob,
    EndedCount,
    FrontierSnapshot,
    JobState,
    PartitionPosition,
    QueuedUrl,
)
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.restart_policy import RestartPolicy
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import pack
from nephila.scheduler.jobs.seen import drop_others

STATES_PER_FRAME = 10_000


def snapshots(dispatcher: Dispatcher) -> Iterator[FrontierSnapshot]:
    """The state after the last commit; nothing may be pending. New queue entries, hosts and seen URLs are written to
    files first: O(new URLs + hosts), amortised over the merges of those files."""
    frontier = dispatcher.frontier
    frontier.hosts.flush()
    outstanding = [
        (uid, waiting)
        for (uid, _), waiting in frontier.in_flight.urls.items()
        if not uid or uid in frontier.jobs or frontier.restart is RestartPolicy.LEASES_CONTINUE
    ]
    yield FrontierSnapshot(
        [
            PartitionPosition(p.number, p.epoch, p.sequence, [EndedCount(uid, o, n) for (uid, o), n in p.ended.items()])
            for p in frontier.partitions
        ],
        [_job_state(job) for job in frontier.jobs.values()],
        frontier.jobs.next_number,
        frontier.store.checkpoint(),
        [
            *(QueuedUrl(uid, w.host.key, pack(w.entry), True) for uid, w in outstanding if uid in frontier.jobs),
            *_delayed(dispatcher),
        ],
        [frontier.in_flight.logged(w) for _, w in outstanding],
        taken_at=frontier.time.utc_now,
        deleted=[DeletedJob(uid, number) for uid, number in frontier.jobs.deleted.items()],
        uses=frontier.quotas.dump(),
    )
    for job in frontier.jobs.values():
        states = job.due_table.dump()
        while watched := list(itertools.islice(states, STATES_PER_FRAME)):
            yield FrontierSnapshot(watched_job=job.uid, watched=watched)
        domains = job.domains.dump(job.uid) if job.domains is not None else iter(())
        while states_of_domains := list(itertools.islice(domains, STATES_PER_FRAME)):
            yield FrontierSnapshot(domains=states_of_domains)
        links = job.refused.held.packed()
        while held := list(itertools.islice(links, STATES_PER_FRAME)):
            yield FrontierSnapshot(holding_job=job.uid, held=held)


def _job_state(job: Job) -> JobState:
    return JobState(
        job.spec,
        job.number,
        job.seen.checkpoint(),
        list(job.scope.anchors),
        list(job.quarantines.values()),
        job.fetch_numbers.first,
        job.fetch_numbers.last,
        job.refused.held.lost,
        sorted(job.budget.priority_refetch),
        job.counts.split_pages,
    )


def _delayed(dispatcher: Dispatcher) -> Iterator[QueuedUrl]:
    frontier = dispatcher.frontier
    for when, number, uid, packed in frontier.delayed.items():
        yield QueuedUrl(uid, frontier.store.name(number), packed, True, when + frontier.time.utc_offset)


def cleanup(frontier: Frontier) -> None:
    """Delete the files that the newest snapshot does not name, once that is durable."""
    frontier.store.cleanup()
    for job in frontier.jobs.values():
        job.seen.cleanup()
    drop_others(frontier.config.directory, frontier.jobs.numbered)
