"""The state of one job in the scheduler. Each part owns itself; the job says what follows from several. Pure."""

from __future__ import annotations

from typing import Final

from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.fragment_routes import Routed, parse_for
from nephila.kernel.messages import CrawlJob, Quarantine
from nephila.native import HostStore, UrlParts
from nephila.scheduler.domains.domain_table import LATEST, DomainTable, table_of
from nephila.scheduler.jobs.compiled_job import compiled_job
from nephila.scheduler.jobs.job_holds import Hold, JobHolds
from nephila.scheduler.jobs.job_queue import JobQueue
from nephila.scheduler.jobs.page_budget import PageBudget
from nephila.scheduler.jobs.queue_entry import SEED, Entry, is_requisite
from nephila.scheduler.jobs.refused_links import RefusedLinks
from nephila.scheduler.jobs.scope import CompiledScope
from nephila.scheduler.jobs.seen import Seen
from nephila.scheduler.jobs.strategies import MAX_ORDER
from nephila.scheduler.jobs.url_counts import FetchNumbers, RunCounts, UrlCounts
from nephila.scheduler.recrawl.due_table import DueTable
from nephila.scheduler.tenants.quotas import Room

_RANK_SHIFT: Final = (MAX_ORDER + LATEST).bit_length()
"""A level of ranks is more than the largest order with the largest lateness by use."""
REDIRECT_ANCHORS: Final = 100
"""Anchors of redirects that are remembered, for the summary."""


class Job:
    """Mutable state of a job. All of it is rebuilt from the commit log. `number` identifies the job in the
    host store."""

    def __init__(
        self,
        spec: CrawlJob,
        number: int,
        store: HostStore,
        seen: Seen,
        first_fetch_no: int = 1,
        page_quota: int | None = None,
        changed: set[str] | None = None,
        partitions: int = 1,
    ) -> None:
        """`page_quota`: the share of one of many partitions in the page budget; None where one frontier has
        all of it. `changed`: the uid is added at each `note_change`. `partitions`: those of the system."""
        self._changed = set() if changed is None else changed
        self._partitions = partitions
        self.uid = spec.uid
        self.number = number
        self.seen = seen
        self.queue = JobQueue(store, number)
        self.counts = UrlCounts()
        self.run_counts = RunCounts()
        self.budget = PageBudget(self.counts, page_quota)
        self.holds = JobHolds()
        self.refused = RefusedLinks()
        self.fetch_numbers = FetchNumbers(first_fetch_no)
        self.domains: DomainTable | None = None
        """Domains and their budgets, in a broad crawl."""
        self.due_table = DueTable(spec.uid)
        """URLs that are fetched repeatedly, and when."""
        self.quarantines: dict[tuple[str, str], Quarantine] = {}
        """(host, path pattern) → the quarantine, also after its release."""
        self.redirect_anchors: set[str] = set()
        """Anchors that redirects of seeds have led to in this run, REDIRECT_ANCHORS at most."""
        # An earlier generation may have queued URLs under another scope.
        self.rechecks_scope = spec.generation > 1
        """Queued URLs may have left the scope."""
        self._apply(spec)
        self.note_change()

    def note_redirect(self, url: str, target: UrlParts | Routed) -> None:
        """A seed has a redirect to a target."""
        source, anchor_of = parse_for(self.compiled.routes, url), self.scope.anchor_of
        anchor = anchor_of(target.host_key, target.path_query)
        if anchor != anchor_of(source.host_key, source.path_query) and len(self.redirect_anchors) < REDIRECT_ANCHORS:
            self.redirect_anchors.add(anchor)

    def note_change(self) -> None:
        """The spec, the seen set, the anchors, the holds or the number of dispatched URLs have changed: an idle job may
        not be idle any more. To be called by who changes the seen set or the anchors."""
        self._changed.add(self.uid)

    # ---- the desired state

    def _apply(self, spec: CrawlJob) -> None:
        self.spec = spec
        document = spec_of(spec)
        self.compiled = compiled_job(document)
        self.tenant, self.weight = document.tenant, document.weight
        self.scope = CompiledScope(document.scope, ())
        self.budget.max_pages = document.scope.max_pages
        self.domains = table_of(document, self.domains, self._partitions)
        self.orders_hosts = self.compiled.ranks is not None or (self.domains is not None and self.domains.orders_hosts)
        self.queue.held_back = self.domains.parked if self.domains is not None else {}
        self.holds.pause(spec.paused)

    def change(self, spec: CrawlJob) -> None:
        """Apply a new desired state. It holds for queued URLs too."""
        scope, document = self.scope, self.compiled.document
        self._apply(spec)
        self.rechecks_scope = self.rechecks_scope or self.compiled.document.scope != document.scope
        self.refused.forget()
        self.run_counts.taken_of_level.clear()
        self.note_change()
        self.scope.take_over(scope)

    def reapply_recrawl(self, utc_now: float) -> None:
        """Apply the current recrawl policy to every watched URL. O(watched URLs)."""
        for state in self.due_table.states():
            if not self.due_table.is_checked_out(state.url_key):
                new = self.compiled.recrawl.reapplied(state, utc_now)
                if new is not state:
                    self.due_table.put(new)

    # ---- holds

    def note_quotas(self, rooms: tuple[Room, ...]) -> None:
        """The rooms in the quotas of the job, its site and its tenant; without one the hold ends."""
        self.holds.move(rooms, self.counts.leased)
        if not rooms:
            self.set_hold(Hold.QUOTA, "")

    def set_hold(self, kind: Hold, text: str) -> None:
        """Hold the job for a time; the empty text ends this hold."""
        if self.holds.set(kind, text):
            self.note_change()

    # ---- URLs that may be taken

    @property
    def has_room(self) -> bool:
        """Whether another URL may be taken: the job is not paused or held, and the page budget covers what is
        outstanding, or there are requisites."""
        return self.holds.have_room and self.budget.has_place

    @property
    def is_blocked(self) -> bool:
        """Whether the job takes nothing until its spec changes, or a hold ends."""
        return self.holds.is_stopped or self.budget.is_spent

    def may_take(self, url_key: bytes) -> bool:
        """Whether this URL may be taken."""
        return not self.holds.is_stopped and self.budget.covers(url_key)

    def lease(self) -> None:
        """A URL was taken from its queue."""
        self.restore_lease()
        self.counts.dispatched += 1
        self._changed.add(self.uid)

    def restore_lease(self) -> None:
        """A URL that another owner took from its queue is outstanding here."""
        self.counts.leased += 1
        self.holds.count(1)

    def end_lease(self) -> None:
        self.counts.leased -= 1
        self.holds.count(-1)

    def is_first_fetch(self, url_key: bytes, fetch_no: int) -> bool:
        """Whether a fetch is the first one of its URL. URLs that were queued before others were forgotten have a lower
        number than the first one of now."""
        return fetch_no <= self.fetch_numbers.first and url_key not in self.due_table.packed

    def lateness(self, host_key: str) -> int:
        """Summand of the order of a host among the hosts of the job: its domain's rank counts before all orders of
        queues, and the use of its domain is some levels of these. O(1)."""
        late = self.domains.lateness(host_key) if self.domains is not None and self.domains.orders_hosts else 0
        ranks = self.compiled.ranks
        return late if ranks is None else late + (ranks.level(host_key) << _RANK_SHIFT)

    # ---- scope

    def is_seed_host(self, host_key: str) -> bool:
        """Whether the scope is anchored at a host; without anchors, whether a seed is there. O(1) amortised."""
        if self.scope.mode != "any":
            return self.scope.is_anchor(host_key)
        return host_key in self.compiled.seed_hosts

    def admits(self, url: str, host_key: str, depth: int, requisite: bool) -> bool:
        """Whether the scope admits a URL. A requisite is admitted on any host unless a pattern excludes it."""
        return not self.scope.excluded(url) if requisite else self.scope.decide(url, host_key, depth).admitted

    def left_scope(self, entry: Entry, host_key: str) -> str:
        """Why a queued URL no longer belongs to the job, or the empty string."""
        if not self.rechecks_scope:
            return ""
        if entry.flags & SEED or is_requisite(entry.context):
            return self.scope.excluded(entry.url)
        verdict = self.scope.decide(entry.url, host_key, entry.depth)
        return "" if verdict.admitted else verdict.rule
