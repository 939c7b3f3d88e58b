"""Links that the scope of a job or the live limit of depth refuses are held, in memory and in the log, for a wider one.
Pure."""

from __future__ import annotations

from collections.abc import Sequence

from nephila.kernel.messages import Outlinks, QueuedUrl
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.jobs.held_links import limit_of
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import Entry, host_of, pack, pack_context, unpack
from nephila.scheduler.jobs.strategies import inherited


def hold_links(frontier: Frontier, job: Job, links: Outlinks, refused: Sequence[int]) -> None:
    """Keep links that the scope or the live depth refuses, as far as the limit allows. O(refused links)."""
    held, depth = job.refused.held, links.depth
    limit = limit_of(len(frontier.jobs), frontier.partition_slice.of)
    too_deep = 0 <= job.scope.max_depth < depth or 0 <= frontier.depth_limit < depth
    if not held.has_room(not too_deep, limit):
        held.lost += len(refused)
        return
    ends = memoryview(links.url_ends).cast("I")
    spans = memoryview(links.host_spans).cast("I")
    context = pack_context(links.context)
    for i in refused:
        url_key = links.fingerprints[16 * i : 16 * i + 16]
        if not held.is_new(url_key, depth) or frontier.is_other_partition(url_key):
            continue
        url = links.urls[ends[i - 1] if i else 0 : ends[i]]
        host_key = links.urls[spans[2 * i] : spans[2 * i + 1]].decode()
        outside = not too_deep or not job.scope.decide(url.decode(), host_key, 0).admitted
        if not held.has_room(outside, limit):
            held.lost += 1
            continue
        priority = links.priorities[i] if links.priorities else 0
        if job.compiled.strategy.relevance and links.parent_priority:
            priority = inherited(priority, links.parent_priority, links.flags[i] if links.flags else 0)
        entry = Entry(url_key, depth, job.fetch_numbers.first, priority=priority, url=url.decode(), context=context)
        packed = pack(entry)
        held.add(packed, outside)
        frontier.pending.of(frontier.pending.partition(url_key)).held.append(QueuedUrl(job.uid, host_key, packed))


def restore_held(job: Job, packed: bytes) -> None:
    """Hold a link of the log or a snapshot."""
    job.refused.held.add(packed, outside=is_outside(job, unpack(packed)))


def is_outside(job: Job, entry: Entry) -> bool:
    """Whether the scope refuses a link for more than its depth."""
    return not job.scope.decide(entry.url, host_of(entry.url), 0).admitted
