"""A cache of links that a worker has sent: they are not sent again, as in Mercator and BUbiNG.

Invariant: a link is left out only if the scheduler received it earlier; it commits messages in the order of sending.
The cache is off for jobs that need every link (a budget per host or domain, whose overflow is found again later) and
for messages with more than links (sitemaps, feeds, dates). A change of the job clears it. Links one step deeper than
the job's limit have a cache of their own: the scheduler holds them, and a shorter path to them may be found later.
Deeper ones are left out. Links of a page that is fetched once more are sent again, since their first message may be
lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.messages import CrawlJob, Outlinks
from nephila.kernel.pages.chosen_links import only
from nephila.native import Trie

KEYS = 250_000
"""Fingerprints per generation and job; two generations of 17 bytes each."""


class _Links:
    """The links of one job: a young generation and the one before."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._young, self._old = Trie(), Trie()

    def new(self, fingerprints: bytes) -> list[int]:
        """Indices of those not remembered, which are from now on."""
        new: list[int] = self._young.missing(fingerprints)
        if new and len(self._old):
            old = self._old
            new = [i for i in new if fingerprints[16 * i : 16 * i + 16] not in old]
        if new:
            if len(self._young) + len(new) > self._most:
                self._young, self._old = Trie(), self._young
            self._young.add(b"".join([fingerprints[16 * i : 16 * i + 16] for i in new]))
        return new


class RecentLinks:
    """The cache of all jobs. Memory is bounded per job; O(links) per message, 10 ns for each known link."""

    def __init__(self, keys: int = KEYS) -> None:
        self._keys = keys
        self._depth: dict[str, int] = {}
        """Job → its largest depth, -1 = no limit."""
        self._links: dict[str, _Links] = {}
        """Job → its cache, for jobs whose links may be left out."""
        self._too_deep: dict[str, _Links] = {}
        """Job → its cache of links that are one step too deep."""
        self.left_out = 0
        """Links that were not sent."""

    def job(self, job: CrawlJob) -> None:
        """A job is new or has changed: clear its cache, since links refused before may be accepted now."""
        self._links.pop(job.uid, None)
        self._too_deep.pop(job.uid, None)
        if job.deleted:
            self._depth.pop(job.uid, None)
            return
        spec = spec_of(job)
        self._depth[job.uid] = spec.scope.max_depth
        if not (spec.host_budget.limits or spec.domains.limit(spec.scope.mode)):
            self._links[job.uid] = _Links(self._keys)

    def forget(self, uid: str) -> None:
        """Clear the cache of a job: all its links are sent again."""
        self._too_deep.pop(uid, None)
        if uid in self._links:
            self._links[uid] = _Links(self._keys)

    def filter(self, message: Outlinks) -> Outlinks | None:
        """The part of a message to send: all of it, some of its links, or None."""
        new = self.new(message)
        if not new:
            return only(message, ()) if message.next_always else None
        return message if len(new) == len(message.fingerprints) // 16 else only(message, new)

    def new(self, message: Outlinks, *, again: bool = False) -> Sequence[int]:
        """Rising indices of the links of a message that have to be sent; `again`: those sent before as well."""
        count = len(message.fingerprints) // 16
        beyond = message.depth - self._depth[message.job] if self._depth.get(message.job, -1) >= 0 else 0
        if beyond > 1:
            return ()
        if beyond > 0:
            if message.source:
                return ()
            too_deep = self._too_deep.setdefault(message.job, _Links(self._keys // 4))
            return self._new(too_deep, message, count, again)
        links = self._links.get(message.job)
        if links is None or message.lastmods or message.source:
            return range(count)
        return self._new(links, message, count, again)

    def _new(self, links: _Links, message: Outlinks, count: int, again: bool) -> Sequence[int]:
        new = links.new(message.fingerprints)
        if again:
            return range(count)
        self.left_out += count - len(new)
        return new
