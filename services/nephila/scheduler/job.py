"""One job as the scheduler sees it: its scope, its seen set, its counts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nephila.kernel.messages import CrawlJob, Outcome, Politeness, Scope
from nephila.scheduler.queue import SEED, Entry
from nephila.scheduler.scope import CompiledScope
from nephila.scheduler.seen import Seen, new_seen

if TYPE_CHECKING:
    from nephila.scheduler.host import Host

REJECTED_LIMIT = 500_000
"""Out-of-scope fingerprints remembered, so that the links of a site's template are judged once, not on every page."""


class Job:
    """Mutable state of a job; all of it is rebuilt from the commit log."""

    def __init__(self, spec: CrawlJob) -> None:
        self.seen: Seen = new_seen()
        self.rejected: set[bytes] = set()
        self.parked: dict[Host, None] = {}
        """Hosts set aside because the job could not take more, in order; the frontier wakes them."""
        self.seed_anchors: set[str] = set()
        """Anchors contributed by seeds of this run themselves, not by what they redirect to."""
        self.queued = 0
        self.leased = 0
        """Fetches in flight or on the way to storage as a page."""
        self.owed: set[bytes] = set()
        """Handed out by a run that was killed: their rows may be in the table already, so the page budget keeps a place
        for each until it is taken again."""
        self.ended: Counter[Outcome] = Counter()
        # Of a later generation: what is queued may have been admitted by an earlier scope.
        self._recheck = spec.generation > 1
        self._apply(spec, ())

    def _apply(self, spec: CrawlJob, anchors: tuple[str, ...]) -> None:
        self.spec = spec
        self.uid = spec.uid
        self.scope = CompiledScope(spec.scope or Scope(), anchors)
        politeness = spec.politeness or Politeness()
        self.delay_s = politeness.delay_s
        self.concurrency_per_host = max(1, politeness.concurrency_per_host)
        self.ignore_robots = politeness.ignore_robots
        self.max_pages = spec.scope.max_pages if spec.scope else 0

    def change(self, spec: CrawlJob) -> None:
        """A new desired state: applies to what is queued as well."""
        self._recheck = self._recheck or spec.scope != self.spec.scope
        self.rejected.clear()
        scope = self.scope
        self._apply(spec, ())
        self.scope.take_over(scope)

    @property
    def open(self) -> bool:
        """Whether another URL may be taken: not paused, and the page budget covers what is on the way."""
        return not self.spec.paused and (not self.max_pages or self._budget_left > 0)

    @property
    def _budget_left(self) -> int:
        return self.max_pages - self.ended[Outcome.STORED] - self.leased

    def may_take(self, url_key: bytes) -> bool:
        """Whether this URL may be taken: the last places of the budget are for those that are owed."""
        if not self.max_pages or not self.owed or url_key in self.owed:
            return self.open
        return not self.spec.paused and self._budget_left > len(self.owed)

    @property
    def budget_spent(self) -> bool:
        """Whether max_pages pages are stored."""
        return bool(self.max_pages) and self.ended[Outcome.STORED] >= self.max_pages

    def reject(self, url_key: bytes) -> None:
        """Remember that a URL is out of scope; forgotten wholesale at the limit, since judging again is only slower."""
        if len(self.rejected) >= REJECTED_LIMIT:
            self.rejected.clear()
        self.rejected.add(url_key)

    def left_scope(self, entry: Entry, host_key: str) -> str:
        """Why a queued URL no longer belongs to the job, or the empty string."""
        if not self._recheck:
            return ""
        if entry.flags & SEED:
            return self.scope.excluded(entry.url)
        verdict = self.scope.decide(entry.url, host_key, entry.depth)
        return "" if verdict.admitted else verdict.rule
