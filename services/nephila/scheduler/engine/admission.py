"""Admission: which seeds and links become URLs of a job. Pure.

An admitted URL is in seen set, queue and log at once. A page's links cost one seen test and one push together, not one
each: most links were seen before and cost a few nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from nephila.kernel.fragment_routes import Routed
from nephila.kernel.messages import Anchor, Context, LinkSource, Outlinks, QueuedUrl, Render, Seed
from nephila.kernel.net.robots import Robots
from nephila.kernel.runtime.errors import PermanentError
from nephila.native import UrlParts
from nephila.scheduler.engine import domain_budgets, page_admission, recrawl_queue
from nephila.scheduler.engine.hold_links import hold_links, is_outside
from nephila.scheduler.engine.sitemap_seeds import sitemap_seeds
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_table import novelty_of
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import (
    RECORD_ONLY,
    SEED,
    TOO_LONG,
    TOO_MANY,
    TOP_OF_LEVEL,
    TOP_OF_PAGE,
    Entry,
    entry_flags,
    host_of,
    is_requisite,
    pack,
    pack_context,
    pack_fields,
    unpack,
)
from nephila.scheduler.jobs.strategies import HEAD, SEED_PRIORITY, inherited
from nephila.scheduler.politeness.robots import OriginRobots, origin_of
from nephila.scheduler.traps.url_shape import without_session

LISTED_SITEMAP = 6
"""Kind of link, in `Outlinks.flags`, of a sitemap that a sitemap index lists."""
MAX_SITEMAPS = 50_000
"""Sitemaps from indexes, followed on one host of a job in one run: as many as the protocol allows one index to list."""
MAX_FOUND_ON_BYTES = 4096
"""Of the URL of the page on which a recorded link stands; a context has to stay far below its limit."""
SITEMAPS_REPORTED = 100
"""Sitemaps beyond the limit that get a row with the reason."""
REJECTED_LIMIT = 500_000
"""Out-of-scope fingerprints remembered, about 9 MB. The links of a site's template are judged once, not on every page.
Each of n jobs may hold 1/n of them; a job with more keeps them until it refuses the next URL."""


def add_seed(
    frontier: Frontier,
    job: Job,
    host_key: str,
    path_query: str,
    url: str,
    url_key: bytes,
    context: Context | None = None,
    render: Render = Render.UNSPECIFIED,
) -> str:
    """Admit a seed and anchor the scope at it; returns the reason of a refusal, or the empty string."""
    try:
        packed_context = pack_context(context)
    except PermanentError as error:
        return str(error)
    excluded = job.scope.excluded(url)
    if excluded:
        return f"excluded by {excluded!r}"
    anchor_scope(frontier, job, host_key, path_query)
    if url_key not in job.seen:
        flags = entry_flags(True, render)
        entry = Entry(url_key, flags=flags, priority=SEED_PRIORITY, url=url, context=packed_context)
        admit(frontier, job, entry, host_key)
    if job.compiled.document.sitemaps:
        origin = origin_of(url, host_key)
        if job.compiled.ignore_robots:
            add_sitemaps(frontier, job, host_key, origin, None)
        elif (robots := _known_robots(frontier, host_key, origin)) is not None:
            add_sitemaps(frontier, job, host_key, origin, robots.rules)
    return ""


def _known_robots(frontier: Frontier, host_key: str, origin: str) -> OriginRobots | None:
    """The robots.txt that was read last, also an expired one; without one the sitemaps are added when it is read."""
    host = frontier.hosts.find(host_key)
    return host.robots.get(origin) if host is not None else None


def add_sitemaps(frontier: Frontier, job: Job, host_key: str, origin: str, robots: Robots | None) -> None:
    """Admit the sitemaps of a seed's host, where the job wants them: those in its robots.txt, else the usual one. They
    add no anchor, because a sitemap may be on another host."""
    if not job.compiled.document.sitemaps or not job.is_seed_host(host_key):
        return
    for parts in sitemap_seeds(job.compiled.document, origin, robots):
        if parts.fingerprint not in job.seen:
            entry = Entry(parts.fingerprint, flags=SEED, priority=SEED_PRIORITY, url=parts.href)
            admit(frontier, job, entry, parts.host_key)


def anchor_scope(frontier: Frontier, job: Job, host_key: str, path_query: str) -> None:
    """Add the host or directory of a seed to the job's scope."""
    anchor = job.scope.add_seed(host_key, path_query)
    if anchor:
        note_anchors(frontier, job, (anchor,))
        frontier.on_anchors(job.uid, (anchor,))


def note_anchors(frontier: Frontier, job: Job, anchors: Sequence[str]) -> None:
    """Log new anchors of a scope. Links that were refused before may be wanted now."""
    if not anchors:
        return
    job.scope.anchors.update(anchors)
    job.note_change()
    frontier.pending.of(frontier.partitions[0]).anchors.extend([Anchor(job.uid, anchor) for anchor in anchors])
    job.refused.forget()
    frontier.on_wider(job.uid)


def add_forwarded(frontier: Frontier, job: Job, seed: Seed, entry: Entry, parts: UrlParts | Routed) -> None:
    """Admit a URL that another partition found and checked as far as it could."""
    if seed.anchor:
        anchor_scope(frontier, job, parts.host_key, parts.path_query)
    if parts.fingerprint in job.seen:
        return
    requisite = is_requisite(entry.context)
    if not entry.flags & SEED and not job.admits(parts.href, parts.host_key, entry.depth, requisite):
        return
    entry = entry._replace(url_key=parts.fingerprint, url=parts.href)
    admit(frontier, job, entry, parts.host_key, head=seed.head)


def admit(frontier: Frontier, job: Job, entry: Entry, host_key: str, *, head: bool = False) -> None:
    """Add one URL to seen set, queue and log: one atomic change of its partition. A URL of another partition is
    forwarded. The fetch number is that of a first fetch."""
    if frontier.is_other_partition(entry.url_key):
        anchor = bool(entry.flags & SEED) and entry.hops > 0
        frontier.forward(Seed(job.uid, entry=pack(entry), head=head, anchor=anchor), entry.url_key)
        return
    job.seen.add(entry.url_key)
    job.note_change()
    if is_requisite(entry.context):
        job.budget.requisites.add(entry.url_key)
    number = frontier.store.host(host_key)
    strategy = job.compiled.strategy
    order = HEAD if head else strategy.order(entry.depth, entry.priority)
    if entry.fetch_no != job.fetch_numbers.first:
        entry = entry._replace(fetch_no=job.fetch_numbers.first)
    packed = pack(entry)
    frontier.store.push(number, job.number, order, packed, not head and strategy.newest_first)
    queued = QueuedUrl(job.uid, host_key, packed, head)
    frontier.pending.queued(frontier.pending.partition(entry.url_key)).append(queued)
    frontier.readiness.newly_queued(number, job, order)


def add_links(frontier: Frontier, links: Outlinks) -> int:
    """Admit the new links of one page that are in scope; returns how many. Further pages of a list follow, if one of
    its links is new."""
    admitted = _add_links(frontier, links)
    if links.next_pages is not None and (admitted or links.next_always):
        admitted += _add_links(frontier, links.next_pages)
        recrawl_queue.queue_next_pages(frontier, links.next_pages)
    return admitted


def _add_links(frontier: Frontier, links: Outlinks) -> int:
    job = frontier.jobs.get(links.job)
    if job is None:
        return 0
    if 0 <= job.scope.max_depth < links.depth:
        if links.depth == job.scope.max_depth + 1 and not links.source:
            hold_links(frontier, job, links, job.seen.missing(links.fingerprints))
        return 0
    if 0 <= frontier.depth_limit < links.depth:
        hold_links(frontier, job, links, job.seen.missing(links.fingerprints))
        return 0
    if job.domains is not None:
        links = domain_budgets.count_links(frontier, job.domains, links)
    if links.lastmods:
        recrawl_queue.apply_lastmods(frontier, job, links)
    limit = REJECTED_LIMIT // len(frontier.jobs)
    admitted = page_admission.admit(frontier, job, links, limit)
    if admitted is not None:
        count, refused = admitted
        if refused:
            hold_links(frontier, job, links, refused)
        return count
    new = job.seen.missing(links.fingerprints)
    if not new:
        return 0
    return _PageLinks(frontier, job, links).admit(new)


def limit_depth(frontier: Frontier, limit: int) -> None:
    """Set the live limit of depth, -1 for none. Held links that it accepts are admitted, those of an earlier owner too.

    O(held links).
    """
    frontier.depth_limit = limit
    for job in list(frontier.jobs.values()):
        admit_held(frontier, job)


def admit_held(frontier: Frontier, job: Job) -> int:
    """Admit the held links that the present scope and live depth accept; returns how many. O(held links)."""
    admitted = outside = 0
    limit = frontier.depth_limit
    for packed in job.refused.held.packed():
        entry = unpack(packed)
        host_key = host_of(entry.url)
        if entry.url_key in job.seen:
            job.refused.held.discard(entry.url_key)
        elif not 0 <= limit < entry.depth and job.scope.decide(entry.url, host_key, entry.depth).admitted:
            job.refused.held.discard(entry.url_key)
            admit(frontier, job, entry, host_key)
            admitted += 1
        else:
            outside += is_outside(job, entry)
    job.refused.held.recount(outside)
    return admitted


class _PageLinks:
    """The new links of one page during admission."""

    def __init__(self, frontier: Frontier, job: Job, links: Outlinks) -> None:
        self.frontier = frontier
        self.job = job
        self.links = links
        self.numbers: dict[str, int] = {}
        """Host key → number in the host store; -1 where the host takes no more."""
        self.firsts: dict[int, int] = {}
        """Host → best order of the page's new URLs there."""
        self.context = pack_context(links.context)
        self.requisites = links.source is LinkSource.REQUISITE
        """The links are requisites: they come before all pages of their hosts, and no browser renders them."""
        self.flags = entry_flags(False, Render.NEVER if self.requisites else Render.UNSPECIFIED)
        self.hops = self._hops()
        """Hops of the links. A sitemap counts as one more hop, which bounds endless chains of sitemaps."""
        self.taken = 0
        """New links that are taken, where only some are."""
        self.hosts: list[int] = []
        self.orders: list[int] = []
        self.packed: list[bytes] = []

    def admit(self, new: list[int]) -> int:
        """Check and admit the links at these indices."""
        links, job, frontier = self.links, self.job, self.frontier
        priorities = self._relevance(new) if job.compiled.strategy.relevance else links.priorities
        picks = job.compiled.picks_links and not self.requisites
        if picks and job.compiled.strategy.relevance:
            new = sorted(new, key=lambda i: -priorities[i])
        ends = memoryview(links.url_ends).cast("I")
        spans = memoryview(links.host_spans).cast("I")
        fingerprints, urls = links.fingerprints, links.urls
        depth, scope = links.depth, job.scope
        limit = REJECTED_LIMIT // len(frontier.jobs)
        too_long = self.hops > frontier.config.max_hops
        keys = []
        admitted: list[str] = []
        refused = []
        for i in new:
            url_key = fingerprints[16 * i : 16 * i + 16]
            if url_key in job.refused.rejected:
                continue
            raw, priority = urls[ends[i - 1] if i else 0 : ends[i]], priorities[i] if priorities else 0
            url = raw.decode()
            host_key = urls[spans[2 * i] : spans[2 * i + 1]].decode()
            if frontier.is_other_partition(url_key):
                packed = self._packed(i, url_key, raw, priority, self._picked(i, self.hops) if picks else self.hops)
                frontier.forward(Seed(job.uid, entry=packed, head=self.requisites), url_key)
                job.refused.reject(url_key, limit)
                continue
            hops = self.hops
            if links.source and links.flags[i] >> 1 & 7 == LISTED_SITEMAP:
                # A sitemap is no page: include patterns do not apply to it.
                hops = self._sitemap_hops(host_key)
                unwanted = bool(scope.excluded(url)) or hops < 0
            else:
                unwanted = too_long or not job.admits(url, host_key, depth, self.requisites)
            if unwanted:
                job.refused.out_of_scope += 1
                job.refused.reject(url_key, limit)
                refused.append(i)
                continue
            if not job.compiled.traps.off and not self.requisites and self._is_session_copy(url, host_key):
                job.refused.reject(url_key, limit)
                continue
            if picks and hops == self.hops:
                hops = self._picked(i, hops)
            if not self._append(self._packed(i, url_key, raw, priority, hops), host_key, priority):
                continue
            keys.append(url_key)
            admitted.append(url)
        if refused and not links.source:
            hold_links(frontier, job, links, refused)
        if keys:
            self._record_self_links(admitted)
            job.seen.add(b"".join(keys))
            job.note_change()
            if self.requisites:
                job.budget.requisites.update(keys)
            newest_first = job.compiled.strategy.newest_first and not self.requisites
            frontier.store.push_many(self.hosts, job.number, self.orders, self.packed, newest_first)
            for number, order in self.firsts.items():
                frontier.readiness.newly_queued(number, job, order)
        return len(keys)

    def _picked(self, i: int, hops: int) -> int:
        """The hops of the new link `i` of a job that takes only some links, or records them: a value that says why it
        is not fetched, or `hops`."""
        job, scope, links = self.job, self.job.compiled.document.scope, self.links
        if links.source and links.flags[i] >> 1 & 7 == LISTED_SITEMAP:
            return hops
        if 0 < scope.links_per_page <= self.taken:
            return TOP_OF_PAGE
        if 0 < scope.links_per_level <= job.run_counts.taken_of_level[links.depth]:
            return TOP_OF_LEVEL
        self.taken += 1
        job.run_counts.taken_of_level[links.depth] += 1
        return RECORD_ONLY if job.compiled.document.record_links else hops

    def _packed(self, i: int, url_key: bytes, raw: bytes, priority: int, hops: int) -> bytes:
        """The queue entry of the link `i`."""
        context = self._recorded_context(i) if hops == RECORD_ONLY else self.context
        first_no = self.job.fetch_numbers.first
        return pack_fields(raw, context, url_key, self.links.depth, first_no, 0, hops, self.flags, priority)

    def _recorded_context(self, i: int) -> bytes:
        """The context of a link that is recorded: its text and its page."""
        links = self.links
        ends = memoryview(links.anchor_ends).cast("I")
        text = bytes(links.anchors[ends[i - 1] if i else 0 : ends[i]]) if links.anchors else b""
        found_on = links.parent_url.encode()[:MAX_FOUND_ON_BYTES].decode("utf-8", "ignore")
        return pack_context(Context(link_text=text.decode("utf-8", "replace"), found_on=found_on))

    def _hops(self) -> int:
        """Sitemaps and redirects that led to this document; 0 for pages. For a sitemap of another partition the number
        is unknown and taken as 1."""
        links, frontier = self.links, self.frontier
        if links.source is not LinkSource.SITEMAP:
            return 0
        if frontier.is_other_partition(links.parent_key):
            return 1
        waiting = frontier.in_flight.urls.get((links.job, links.parent_key))
        return min(waiting.entry.hops, RECORD_ONLY - 2) + 1 if waiting is not None else 1

    def _sitemap_hops(self, host_key: str) -> int:
        """Hops of one more sitemap that an index lists; -1 when it is ignored."""
        self.job.run_counts.sitemaps_listed[host_key] += 1
        beyond = self.job.run_counts.sitemaps_listed[host_key] - MAX_SITEMAPS
        if beyond > SITEMAPS_REPORTED:
            return -1
        if beyond > 0:
            return TOO_MANY
        return TOO_LONG if self.hops > self.frontier.config.max_hops else self.hops

    def _is_session_copy(self, url: str, host_key: str) -> bool:
        """Whether the URL is a copy of a known page under a new session id."""
        if not without_session(url):
            return False
        host = self.frontier.hosts.get_or_create(host_key)
        host.changed = True
        return bool(novelty_of(host, self.job).is_session_copy(url))

    def _record_self_links(self, admitted: list[str]) -> None:
        """Record whether a part of the site links only to itself. In a cluster, links to hosts of
        other partitions are missing here, so they do not save a part from being closed."""
        links, job = self.links, self.job
        if job.compiled.traps.off or links.source or not links.parent_url:
            return
        host = self.frontier.hosts.find(host_of(links.parent_url))
        if host is not None:
            novelty_of(host, job).linked(links.parent_url, admitted)
            host.changed = True

    def _relevance(self, new: list[int]) -> bytes:
        """Priorities of all links by relevance: their own, or a share of their parent's."""
        links = self.links
        count = len(links.fingerprints) // 16
        priorities, flags = bytearray(links.priorities or count), links.flags or bytes(count)
        if links.parent_priority:
            for i in new:
                priorities[i] = inherited(priorities[i], links.parent_priority, flags[i])
        return bytes(priorities)

    def _append(self, packed: bytes, host_key: str, priority: int) -> bool:
        """Add one link to the batch; False when its host takes no more for this job."""
        frontier, job = self.frontier, self.job
        number = self.numbers.get(host_key)
        if number is None:
            number = self.numbers[host_key] = frontier.store.host(host_key)
            if number in job.queue.over_budget_hosts:
                self.numbers[host_key] = number = -1
        if number < 0:
            return False
        held = job.compiled.host_limits.queued
        if held and frontier.store.length(number, job.number) + self.hosts.count(number) >= held:
            return False
        order = HEAD if self.requisites else job.compiled.strategy.order(self.links.depth, priority)
        self.hosts.append(number)
        self.orders.append(order)
        self.packed.append(packed)
        first = self.firsts.get(number)
        if first is None or order < first:
            self.firsts[number] = order
        queued = QueuedUrl(job.uid, host_key, packed, self.requisites)
        frontier.pending.queued(frontier.pending.partition(packed[:16])).append(queued)
        return True
