"""The state of one job in the scheduler: scope, seen URLs, due pages, budgets, counts."""

from __future__ import annotations

from collections import Counter
from enum import Enum

from nephila.kernel.documents import fetch_windows
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_document import keeps_routes, spec_of, urls_of
from nephila.kernel.documents.job_schema import RENDERS
from nephila.kernel.messages import CrawlJob, HostUse, Outcome, Quarantine
from nephila.native import HostStore, Trie, UrlError, parse_url
from nephila.scheduler.jobs.held_links import HeldLinks
from nephila.scheduler.jobs.queue_entry import SEED, Entry, is_requisite
from nephila.scheduler.jobs.scope import CompiledScope
from nephila.scheduler.jobs.seen import Seen
from nephila.scheduler.jobs.strategies import STRATEGIES, StrategyRow
from nephila.scheduler.politeness.host_policy import HostPolicies
from nephila.scheduler.recrawl.due_table import DueTable
from nephila.scheduler.recrawl.policy import RecrawlPolicy
from nephila.scheduler.tenants.quotas import Room

# A name of the module: in Python 3.11 an attribute of an enum class costs ten times as much.
STORED = Outcome.STORED


def _host_key(url: str) -> str:
    try:
        return parse_url(url).host_key
    except UrlError:
        return ""


class Hold(Enum):
    """Why a job takes nothing for a time, beside a pause. Its queue is kept."""

    QUOTA = "quota"
    """A quota of the job, its site or its tenant is used up."""
    WINDOW = "window"
    """None of its windows is open."""


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
    ) -> None:
        """`page_quota`: the share of one of many partitions in the page budget; None where one frontier has
        all of it. `changed`: the uid is added at each `note_change`."""
        self._changed = set() if changed is None else changed
        self.number = number
        self.seen = seen
        self._store = store
        self.rejected = Trie()
        """Fingerprints of links that were refused: they are not judged again."""
        self.held = HeldLinks()
        """Links that the scope refuses, for a wider scope."""
        self.out_of_scope = 0
        """URLs refused by the scope since the program started. A URL may count twice, when `rejected` was cleared
        between."""
        self.waiting_hosts: dict[int, None] = {}
        """Hosts held back because the job could take no more, in order. `Frontier.resume_hosts` schedules them."""
        self.over_budget_hosts: dict[int, None] = {}
        """Hosts on which the job has spent its budget. Their URLs stay queued, and the job can end without them."""
        self.first_fetch_no = self.last_fetch_no = first_fetch_no
        """Number of the first fetch of every URL (an earlier job of this name may have left rows), and the highest
        number given."""
        self.seed_anchors: set[str] = set()
        """Anchors of the seeds of this run, without those of their redirects."""
        self.delayed = 0
        """URLs that wait outside the queues for an instant."""
        self._holds: dict[Hold, str] = {}
        """What holds the job now, and the words for it."""
        self.rooms: tuple[Room, ...] = ()
        """Rooms in the quotas of the job."""
        self.hold_changes = 0
        """How often a hold began or ended."""
        self.leased = 0
        """Fetches in flight, and fetched pages without a receipt."""
        self.dispatched = 0
        """URLs taken from their queues since this program started with the job."""
        self.forwarded = 0
        """URLs handed to other partitions since this program started with the job."""
        self.split_pages = 0
        """Pages in use that came with the partition when it was split from another (above 0), or went with those that
        were split from it (below 0)."""
        self.page_quota = page_quota
        """Share of this partition in the page budget; None: all of it."""
        self.spent_elsewhere = False
        """All partitions together have stored as many pages as the budget allows."""
        self.reserved: set[bytes] = set()
        """Stored pages that are queued for another fetch. Each has a reservation in the page budget."""
        self.priority_refetch: set[bytes] = set()
        """Queued URLs that were in flight when a run was killed. Their rows may be in the table already, so they come
        before new URLs. They come after reserved ones, because their fetch may end without a page."""
        self.requisites: set[bytes] = set()
        """Requisites that are queued or outstanding. They need no place in the page budget."""
        self.ended: Counter[Outcome] = Counter()
        self.sitemaps_listed: Counter[str] = Counter()
        """Host → sitemaps that sitemap indexes have listed. Lost in a restart."""
        self.taken_of_level: Counter[int] = Counter()
        """Depth → new links that were taken since the last change of the document. Lost in a restart."""
        self.odd_shape_count: Counter[int] = Counter()
        """Host → URLs with the shape of a trap that were fetched. Lost in a restart."""
        self.quarantines: dict[tuple[str, str], Quarantine] = {}
        """(host, path pattern) → the quarantine, also after its release."""
        # An earlier generation may have queued URLs under another scope.
        self.rechecks_scope = spec.generation > 1
        """Queued URLs may have left the scope."""
        self.due_table = DueTable(spec.uid)
        """URLs that are fetched repeatedly, and when."""
        self._apply(spec, ())
        self.note_change()

    def note_change(self) -> None:
        """The spec, the seen set, the anchors, the holds or the number of dispatched URLs have changed: an idle job may
        not be idle any more. To be called by who changes the seen set or the anchors."""
        self._changed.add(self.uid)

    def _apply(self, spec: CrawlJob, anchors: tuple[str, ...]) -> None:
        self.spec = spec
        self.uid = spec.uid
        self._stopped = spec.paused or bool(self._holds)
        self.document = document = spec_of(spec)
        """The document of the job. What a URL needs of it is compiled below."""
        self.tenant, self.weight = document.tenant, document.weight
        self.routes = keeps_routes(document)
        windows = tuple(document.windows)
        self.windows = fetch_windows.compiled(windows, document.time_zone) if windows else None
        """Hours in which the job fetches; None: all."""
        self.has_quotas = False
        """Whether fetches are counted in quotas."""
        self.scope = CompiledScope(document.scope, anchors)
        self.strategy: StrategyRow = STRATEGIES[document.strategy]
        self.policies = HostPolicies(document.politeness)
        self.ignore_robots = not document.politeness.respect_robots
        self.max_pages = document.scope.max_pages
        self.picks_links = bool(
            document.record_links or document.scope.links_per_page or document.scope.links_per_level
        )
        """Whether not every new link is fetched."""
        self.budget = document.host_budget
        self.budget_time_s = seconds(self.budget.time)
        self.counts_host_use = bool(self.budget.pages or self.budget.bytes or self.budget_time_s)
        """Whether fetches count against a budget per host."""
        self.traps = document.traps
        self.recrawl = RecrawlPolicy(document.recrawl, document.schedule, document.time_zone)
        self.render = RENDERS[document.render]
        self._seed_hosts: frozenset[str] | None = None

    def change(self, spec: CrawlJob) -> None:
        """Apply a new desired state. It holds for queued URLs too."""
        self.rechecks_scope = self.rechecks_scope or spec_of(spec).scope != self.document.scope
        self.forget_rejected()
        scope = self.scope
        self._apply(spec, ())
        self.taken_of_level.clear()
        self.note_change()
        self.scope.take_over(scope)

    def reapply_recrawl(self, utc_now: float) -> None:
        """Apply the current recrawl policy to every watched URL. O(watched URLs)."""
        for state in self.due_table.states():
            if not self.due_table.is_checked_out(state.url_key):
                new = self.recrawl.reapplied(state, utc_now)
                if new is not state:
                    self.due_table.put(new)

    def note_quotas(self, rooms: tuple[Room, ...]) -> None:
        """The rooms in the quotas of the job, its site and its tenant; without one the hold ends."""
        self._count_lease(-self.leased)
        self.rooms = rooms
        self._count_lease(self.leased)
        self.has_quotas = bool(rooms)
        if not rooms:
            self.set_hold(Hold.QUOTA, "")

    def hold(self, kind: Hold) -> str:
        """The cause that holds the job in this way, and until when, in words; empty: none."""
        return self._holds.get(kind, "")

    def set_hold(self, kind: Hold, text: str) -> None:
        """Hold the job for a time; the empty text ends this hold."""
        if bool(text) != (kind in self._holds):
            self.hold_changes += 1
            self.note_change()
        if text:
            self._holds[kind] = text
        else:
            self._holds.pop(kind, None)
        self._stopped = self.spec.paused or bool(self._holds)

    @property
    def queued(self) -> int:
        """URLs in queues, and delayed ones."""
        return self._store.job_length(self.number) + self.delayed

    @property
    def waiting(self) -> int:
        """Queued URLs without those on hosts whose budget is spent. O(such hosts)."""
        return max(self.queued - sum(self._store.length(host, self.number) for host in self.over_budget_hosts), 0)

    @property
    def has_room(self) -> bool:
        """Whether another URL may be taken: the job is not paused or held, and the page budget covers what is
        outstanding, or there are requisites."""
        if self.rooms and not all(room.in_flight < room.places for room in self.rooms):
            return False
        if self._stopped or not self.max_pages:
            return not self._stopped
        places = self.max_pages if self.page_quota is None else self.page_quota
        return places > self.ended[STORED] + self.leased or bool(self.requisites)

    @property
    def is_blocked(self) -> bool:
        """Whether the job takes nothing until its spec changes, or a hold ends."""
        return self._stopped or (bool(self.max_pages) and self.budget_spent)

    @property
    def budget_left(self) -> int:
        """Pages that the job may still store, without those that are outstanding."""
        places = self.max_pages if self.page_quota is None else self.page_quota
        return places - self.ended[STORED] - self.leased

    @property
    def pages_claimed(self) -> int:
        """Pages of the budget that are in use: stored, outstanding or reserved."""
        return self.ended[STORED] + self.leased + len(self.reserved) + len(self.priority_refetch)

    def is_seed_host(self, host_key: str) -> bool:
        """Whether the scope is anchored at a host; without anchors, whether a seed is there. O(1) amortised."""
        if self.scope.mode != "any":
            return self.scope.is_anchor(host_key)
        if self._seed_hosts is None:
            self._seed_hosts = frozenset(filter(None, map(_host_key, urls_of(self.document))))
        return host_key in self._seed_hosts

    def lease(self) -> None:
        """A URL was taken from its queue."""
        self.leased += 1
        if self.rooms:
            self._count_lease(1)
        self.dispatched += 1
        self._changed.add(self.uid)

    def restore_lease(self) -> None:
        """A URL that another owner took from its queue is outstanding here."""
        self.leased += 1
        if self.rooms:
            self._count_lease(1)

    def end_lease(self) -> None:
        self.leased -= 1
        if self.rooms:
            self._count_lease(-1)

    def _count_lease(self, count: int) -> None:
        for room in self.rooms:
            room.in_flight += count

    def add_delayed(self, count: int) -> None:
        """So many more URLs are delayed."""
        self.delayed += count

    def note_fetch_no(self, fetch_no: int) -> None:
        """A fetch has this number."""
        self.last_fetch_no = max(self.last_fetch_no, fetch_no)

    def set_quota(self, pages: int, spent_elsewhere: bool) -> None:
        """Change the share of this partition in the page budget."""
        self.page_quota, self.spent_elsewhere = pages, spent_elsewhere

    def is_first_fetch(self, url_key: bytes, fetch_no: int) -> bool:
        """Whether a fetch is the first one of its URL. URLs that were queued before others were forgotten have a lower
        number than `first_fetch_no`."""
        return fetch_no <= self.first_fetch_no and url_key not in self.due_table.packed

    def restore_fetch_numbers(self, first: int, last: int) -> None:
        """Set the fetch numbers from a snapshot."""
        self.first_fetch_no, self.last_fetch_no = first, last

    def reserve_page(self, url_key: bytes) -> None:
        """Reserve page budget for a stored page that is queued again."""
        if self.max_pages:
            self.reserved.add(url_key)
            self.priority_refetch.discard(url_key)

    def free_reservation(self, url_key: bytes) -> None:
        """Free the reservation of a URL that is taken or has ended."""
        self.reserved.discard(url_key)
        self.priority_refetch.discard(url_key)

    def may_take(self, url_key: bytes) -> bool:
        """Whether this URL may be taken. The last pages of the budget are for URLs with a reservation or priority."""
        if not self.max_pages or url_key in self.requisites:
            return not self._stopped
        if url_key in self.reserved:
            return self.has_room
        before = len(self.reserved) + (len(self.priority_refetch) if url_key not in self.priority_refetch else 0)
        places = self.max_pages if self.page_quota is None else self.page_quota
        return not self._stopped and places - self.ended[STORED] - self.leased > before

    @property
    def budget_spent(self) -> bool:
        """Whether `max_pages` pages are stored, with their requisites."""
        if not self.max_pages or self.requisites:
            return False
        if self.page_quota is not None:
            return self.spent_elsewhere and not self.reserved and not self.priority_refetch
        return self.ended[STORED] >= self.max_pages

    def spent(self, use: HostUse | None) -> str:
        """The budget of a host that is spent, in words; the empty string when none is."""
        if use is None or not self.counts_host_use:
            return ""
        budget = self.budget
        if budget.pages and use.pages >= budget.pages:
            return f"the budget of {budget.pages:,} fetches per host is spent"
        if budget.bytes and use.bytes >= budget.bytes:
            return f"the budget of {budget.bytes:,} bytes per host is spent"
        if self.budget_time_s and use.time_s >= self.budget_time_s:
            return f"the budget of {self.budget_time_s:g} s per host is spent"
        return ""

    def reject(self, url_key: bytes, limit: int) -> None:
        """Remember an out-of-scope URL. At the limit all are forgotten: to judge a URL again is only slower."""
        if len(self.rejected) >= limit:
            self.forget_rejected()
        self.rejected.add(url_key)

    def forget_rejected(self) -> None:
        """Judge refused links again from now on."""
        self.rejected = Trie()

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
