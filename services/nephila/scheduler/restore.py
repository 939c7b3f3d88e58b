"""From the log to the views and back: recovery of a frontier, and the states a snapshot is made of.

What was leased when the process died goes back to the head of its host's queue with its attempt counted, and its host
rests for one delay from now: when that fetch ended nobody knows, but it was before this program started.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nephila.kernel.messages import (
    Anchor,
    EndedCount,
    FrontierCommit,
    FrontierSnapshot,
    LeasedUrl,
    QueuedUrl,
    SeenSnapshot,
)
from nephila.scheduler.dispatch import Dispatcher
from nephila.scheduler.frontier import Frontier, Partition
from nephila.scheduler.host import Host
from nephila.scheduler.job import Job
from nephila.scheduler.politeness import from_state
from nephila.scheduler.queue import host_of, pack_queued, repack, unpack, unpack_queued
from nephila.scheduler.robots import believe, crawl_delay_s
from nephila.scheduler.seen import slice_prefix


@dataclass(slots=True)
class Restored:
    """What recovery found. Queued URLs are kept packed: a million of them have to fit beside the queues."""

    urls: int = 0
    leased: int = 0
    commits: int = 0
    pending: dict[str, dict[bytes, bytes]] = field(default_factory=dict)
    """Job → fingerprint → packed URL, in queueing order."""
    place: dict[tuple[str, bytes], tuple[bool, float]] = field(default_factory=dict)
    """(head, not_before UTC) of those that are not simply at the tail."""
    attempts: dict[tuple[str, bytes], int] = field(default_factory=dict)
    """Attempt under way, of those that were handed out."""
    asked: dict[tuple[str, int], None] = field(default_factory=dict)
    """(host, partition) of those whose robots.txt was being fetched."""


def restore(
    dispatcher: Dispatcher, entries: Iterable[FrontierSnapshot | FrontierCommit], now: float, utc_now: float
) -> Restored:
    """Rebuild all views from what was committed. O(entries)."""
    found = Restored()
    frontier = dispatcher.frontier
    for entry in entries:
        found.commits += 1
        if isinstance(entry, FrontierSnapshot):
            _load_snapshot(frontier, entry, found, now, utc_now)
        else:
            _replay(frontier, entry, found, now, utc_now)
    _requeue(dispatcher, found, now, utc_now)
    return found


def _load_snapshot(frontier: Frontier, state: FrontierSnapshot, found: Restored, now: float, utc_now: float) -> None:
    partition = frontier.partitions[state.partition]
    partition.sequence = state.sequence
    partition.epoch = state.epoch
    for spec in state.jobs:
        frontier.jobs[spec.uid] = Job(spec)
    for seen in state.seen:
        frontier.jobs[seen.job].seen.add(seen.fingerprints)
    for count in state.ended:
        partition.ended[count.job, count.outcome] += count.count
        frontier.jobs[count.job].ended[count.outcome] += count.count
    changes = FrontierCommit(
        state.partition,
        queued=state.queued,
        leased=state.leased,
        hosts=state.hosts,
        robots=state.robots,
        anchors=state.anchors,
    )
    _apply(frontier, partition, changes, found, now, utc_now)


def _replay(frontier: Frontier, commit: FrontierCommit, found: Restored, now: float, utc_now: float) -> None:
    partition = frontier.partitions[commit.partition]
    if commit.sequence <= partition.sequence:
        return
    partition.sequence = commit.sequence
    partition.epoch = commit.epoch
    for spec in commit.jobs:
        known = frontier.jobs.get(spec.uid)
        if known is None:
            frontier.jobs[spec.uid] = Job(spec)
        else:
            known.change(spec)
    _apply(frontier, partition, commit, found, now, utc_now)
    for ended in commit.ended:
        found.pending.get(ended.job, {}).pop(ended.url_key, None)
        _forget(found, (ended.job, ended.url_key))
        partition.ended[ended.job, ended.outcome] += 1
        frontier.jobs[ended.job].ended[ended.outcome] += 1


def _forget(found: Restored, key: tuple[str, bytes]) -> None:
    found.place.pop(key, None)
    found.attempts.pop(key, None)


def _apply(
    frontier: Frontier, partition: Partition, commit: FrontierCommit, found: Restored, now: float, utc_now: float
) -> None:
    for anchor in commit.anchors:
        frontier.jobs[anchor.job].scope.anchors.add(anchor.place)
    for queued in commit.queued:
        key = (queued.job, queued.url_key)
        frontier.jobs[queued.job].seen.add(queued.url_key)
        urls = found.pending.setdefault(queued.job, {})
        # Taken out first: its place in the order is that of its last queueing.
        if urls.pop(queued.url_key, None) is not None:
            _forget(found, key)
        urls[queued.url_key] = pack_queued(queued)
        if queued.head:
            found.place[key] = (queued.head, queued.not_before)
    for state in commit.hosts:
        host = frontier.host(partition, state.host)
        host.pace = from_state(state, now, utc_now)
        host.address = state.address
        found.asked.pop((state.host, partition.number), None)
    for text in commit.robots:
        host = frontier.host(partition, text.host)
        host.robots[text.origin] = believe(text, now, utc_now)
        found.asked.pop((text.host, partition.number), None)
    # After the ends of earlier requests: what a turn hands out is the last thing that it does.
    for leased in commit.leased:
        if not leased.job:
            found.asked[leased.host, partition.number] = None
        elif leased.url_key in found.pending.get(leased.job, ()):
            found.attempts[leased.job, leased.url_key] = leased.attempt


def _requeue(dispatcher: Dispatcher, found: Restored, now: float, utc_now: float) -> None:
    frontier = dispatcher.frontier
    hosts = [host for partition in frontier.partitions for host in partition.hosts.values()]
    for host in hosts:
        host.crawl_delay_s = crawl_delay_s(host, frontier.config.agent, frontier.config)
    found.leased = len(found.attempts)
    for uid, urls in found.pending.items():
        found.urls += len(urls)
        # Those that were handed out before all others, also at the head of their queues: nobody may stand before them.
        first = [url_key for url_key in urls if (uid, url_key) in found.attempts]
        for url_key in first:
            _put_back(dispatcher, frontier.jobs[uid], url_key, urls.pop(url_key), found, now, utc_now)
        for url_key, packed in urls.items():
            _put_back(dispatcher, frontier.jobs[uid], url_key, packed, found, now, utc_now)
    found.pending.clear()
    found.place.clear()
    for key, number in found.asked:
        host = frontier.host(frontier.partitions[number], key)
        host.pace.after_fetch(now, frontier.delay_s(host, None))
    for partition in frontier.partitions:
        for host in partition.hosts.values():
            frontier.schedule(host)


def _put_back(
    dispatcher: Dispatcher,
    job: Job,
    url_key: bytes,
    packed: bytes,
    found: Restored,
    now: float,
    utc_now: float,
) -> None:
    frontier = dispatcher.frontier
    entry = unpack(packed)
    host = frontier.host(frontier.partition(url_key), host_of(entry.url))
    head, not_before = found.place.get((job.uid, url_key), (False, 0.0))
    attempt = found.attempts.get((job.uid, url_key))
    if attempt is not None:
        packed, head, not_before = repack(entry, min(attempt, frontier.config.tries - 1)), True, 0.0
        job.owed.add(url_key)
        host.pace.after_fetch(now, frontier.delay_s(host, job))
    wait_s = min(max(not_before - utc_now, 0.0), frontier.config.backoff_max_s)
    dispatcher.queue_restored(host, job, packed, entry.depth, head, wait_s, now)


def snapshots(dispatcher: Dispatcher, now: float) -> Iterator[FrontierSnapshot]:
    """The state of every partition after its last commit; nothing may be pending. O(everything)."""
    frontier = dispatcher.frontier
    dumps = {uid: job.seen.dump() for uid, job in frontier.jobs.items()}
    delayed: dict[int, list[QueuedUrl]] = {}
    for when, host, uid, packed in dispatcher.delayed():
        queued = unpack_queued(packed, uid, host.key, True, when + frontier.utc_offset)
        delayed.setdefault(host.partition, []).append(queued)
    for partition in frontier.partitions:
        yield FrontierSnapshot(
            partition.number,
            partition.epoch,
            partition.sequence,
            [*_queued(partition), *delayed.get(partition.number, [])],
            [host.pace.to_state(host.key, host.address, frontier.utc_offset) for host in _paused(partition, now)],
            [robots.text for host in partition.hosts.values() for robots in host.robots.values()],
            [job.spec for job in frontier.jobs.values()] if partition.number == 0 else [],
            [
                SeenSnapshot(uid, slice_prefix(dump, partition.number, len(frontier.partitions)))
                for uid, dump in dumps.items()
            ],
            [Anchor(job.uid, place) for job in frontier.jobs.values() for place in sorted(job.scope.anchors)]
            if partition.number == 0
            else [],
            [EndedCount(uid, outcome, n) for (uid, outcome), n in partition.ended.items()],
            [LeasedUrl(w.entry.url_key, uid, w.host.key, w.attempt) for (uid, _), w in partition.outstanding.items()],
        )


def _paused(partition: Partition, now: float) -> Iterator[Host]:
    return (h for h in partition.hosts.values() if h.pace.not_before > now or h.pace.backoff_s)


def _queued(partition: Partition) -> Iterator[QueuedUrl]:
    """Outstanding URLs first: after a restart they go before what is queued."""
    for (uid, _), waiting in partition.outstanding.items():
        if uid:
            yield unpack_queued(repack(waiting.entry, waiting.entry.attempts), uid, waiting.host.key, True)
    for host in partition.hosts.values():
        for uid, queue in host.queues.items():
            for packed, head in queue.items():
                yield unpack_queued(packed, uid, host.key, head)
