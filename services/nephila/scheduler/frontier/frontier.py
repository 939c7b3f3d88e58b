"""The frontier: one or more partitions of URLs, over one commit log. Pure, apart from the files of host store and seen
sets.

Every change updates the views (seen, queues, hosts, URLs in flight) and adds to the pending commit of its partition.
Requests and rows are published only after the commits are written: commit first, emit after. The views are never a
second truth: recovery rebuilds them from the log alone.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from nephila.kernel.layout import Layout, layout_of
from nephila.kernel.messages import Outcome, Quarantine, Seed
from nephila.native import HostStore
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.delayed_urls import DelayedUrls
from nephila.scheduler.frontier.holds import Holds
from nephila.scheduler.frontier.host_state import Host, QueueSlot
from nephila.scheduler.frontier.host_table import HostTable
from nephila.scheduler.frontier.in_flight import InFlight
from nephila.scheduler.frontier.pending_commit import Partition, PendingCommit
from nephila.scheduler.frontier.prepared_hosts import PreparedHosts
from nephila.scheduler.frontier.readiness import Readiness
from nephila.scheduler.frontier.restart_policy import RestartPolicy
from nephila.scheduler.frontier.turn_time import TurnTime
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.jobs import Jobs
from nephila.scheduler.jobs.seen import Seen
from nephila.scheduler.politeness.address_queue import AddressQueue
from nephila.scheduler.politeness.lead import Lead
from nephila.scheduler.tenants.quotas import Quotas
from nephila.scheduler.tenants.tenants import tenants


class PartitionSlice(NamedTuple):
    """The part of the MD5 circle that a frontier has: partition `number` of a layout of `of` partitions, `base` of them
    at its creation (0: all). The frontier divides it into `config.partitions`."""

    number: int
    of: int
    base: int = 0

    @property
    def layout(self) -> Layout:
        return layout_of(self.base or self.of, self.of)


WHOLE = PartitionSlice(0, 1)


class TenantUse(msgspec.Struct):
    """What the jobs of a tenant have used, until now."""

    fetches: int = 0
    """Fetches of pages."""
    wire_bytes: int = 0
    browser_s: float = 0.0


class FrontierCounters(msgspec.Struct):
    """Counters of a program over all its frontiers; they never fall."""

    without_page: Counter[str] = msgspec.field(default_factory=Counter)
    """Reason → URLs that ended without a page."""
    wire_bytes: int = 0
    """Bytes received from servers."""
    causes: Counter[str] = msgspec.field(default_factory=Counter)
    """The same by the finer reason, where there is one."""
    first_fault: str = ""
    """The first try of a program that failed, for people."""
    early_fetches: int = 0
    """Fetches that began before their host might be fetched from."""
    lost_messages: int = 0
    """URLs whose page, record or receipt was lost on the bus; they were fetched or their rows published again."""
    tenants: dict[str, TenantUse] = msgspec.field(default_factory=dict)
    """Tenants that have jobs → their use. At most one for each job."""

    def count_tenant(self, tenant: str, wire_bytes: int, browser_s: float) -> None:
        """Count one fetch of a page."""
        use = self.tenants.get(tenant)
        if use is None:
            use = self.tenants[tenant] = TenantUse()
        use.fetches += 1
        use.wire_bytes += wire_bytes
        use.browser_s += browser_s


class Frontier:
    """All partitions of one scheduler, or one of them: the parts that own its state, and what none of them owns."""

    def __init__(
        self,
        config: SchedulerConfig,
        store: HostStore,
        new_seen: Callable[[int], Seen],
        rng: random.Random | None = None,
        partition_slice: PartitionSlice = WHOLE,
        restart: RestartPolicy = RestartPolicy.LEASES_END,
        addresses: AddressQueue[QueueSlot] | None = None,
        consumed_until: float = math.inf,
        on_wider: Callable[[str], None] = lambda uid: None,
        on_anchors: Callable[[str, Sequence[str]], None] = lambda uid, anchors: None,
        counters: FrontierCounters | None = None,
        page_quota: int | None = None,
        lead: Lead | None = None,
    ) -> None:
        """URLs outside `partition_slice` go to `for_other_partitions`. `on_wider(uid)`: the scope of a job has a new
        anchor, so links that were refused may be wanted. `on_anchors(uid, anchors)`: this frontier has added those.
        `counters`: those of the program. `page_quota`: share of its page budget that a new job has here; None: all.
        `lead`: of all partitions of the program; None: requests are not planned."""
        if config.partitions < 1 or config.partitions & (config.partitions - 1):
            raise ValueError(f"partitions must be a power of two, got {config.partitions}")
        self.config = config
        self.store = store
        self.rng = rng or random.Random()
        self.time = TurnTime()
        first = partition_slice.number * config.partitions
        self.pending = PendingCommit(range(first, first + config.partitions))
        self.partitions = self.pending.partitions
        self.partition_slice = partition_slice
        self._layout = partition_slice.layout
        self.arc = self._layout.arc(partition_slice.number)
        """The top bits of its fingerprints, as many as the layout has."""
        self.restart = restart
        self.jobs = Jobs(store, new_seen, page_quota, partition_slice.of)
        prepared = PreparedHosts()
        self.hosts = HostTable(store, config, self.jobs.numbered, prepared, self.time)
        self.addresses = addresses if addresses is not None else AddressQueue(config.address_limits())
        self.lead = lead or Lead()
        self.readiness = Readiness(store, self.jobs, self.hosts, prepared, self.addresses, self.time, self.lead)
        self.quotas = Quotas(tenants(config.tenants), partition_slice.of)
        self.holds = Holds(self.jobs, self.quotas, self.pending, self.readiness, self.time)
        self.in_flight = InFlight(
            config,
            self.jobs,
            self.addresses,
            self.pending,
            self.time,
            restart=restart,
            consumed_until=consumed_until,
        )
        self.delayed = DelayedUrls(self.jobs)
        self.for_other_partitions: list[tuple[int, Seed]] = []
        """(partition, URL) that were found here and belong to other partitions. They are sent before the
        next commit."""
        self.concurrency, self.window = config.concurrency, config.window
        """Limits of the leases and of the URLs in flight."""
        self.depth_limit = -1
        """Links that lie deeper are not admitted, regardless of their job's limit; -1: no limit. A live setting."""
        self.next_recrawl = -math.inf
        """UTC instant, or earlier, at which the first page of any job is due. The due tables are read then, and after a
        change."""
        self.recrawl_checked_at = -math.inf
        self.on_wider = on_wider
        self.on_anchors = on_anchors
        self.counters = counters or FrontierCounters()

    def begin_turn(self, now: float, utc_now: float) -> None:
        """Set the instants of a new turn."""
        self.time.begin(now, utc_now)

    def set_limits(self, concurrency: int, window: int) -> None:
        """Change the limits of the leases and of the URLs in flight."""
        self.concurrency, self.window = concurrency, window

    # ---- partitions

    def is_other_partition(self, url_key: bytes) -> bool:
        """Whether a URL belongs to a partition that this frontier does not have."""
        return self._layout.bits > 0 and self._layout.of(url_key) != self.partition_slice.number

    def forward(self, seed: Seed, url_key: bytes) -> None:
        """Hand a URL to the partition that it belongs to."""
        self.for_other_partitions.append((self._layout.of(url_key), seed))
        if (job := self.jobs.get(seed.job)) is not None:
            job.counts.forwarded += 1

    def take_for_other_partitions(self) -> list[tuple[int, Seed]]:
        """URLs to send to other partitions before the next commit."""
        taken, self.for_other_partitions = self.for_other_partitions, []
        return taken

    # ---- ended URLs

    def count_ended(self, job: Job, partition: Partition, outcome: Outcome, by: int = 1) -> None:
        """URLs of a job have ended; -1: one is open again or forgotten."""
        job.counts.ended[outcome] += by
        partition.ended[job.uid, outcome] += by

    def note_recrawl(self, at: float) -> None:
        """A page is due at this instant, UTC."""
        self.next_recrawl = min(self.next_recrawl, at)

    def recrawl_checked(self, at: float, next_recrawl: float) -> None:
        """The due tables were read at `at`; the next page is due at `next_recrawl`, UTC."""
        self.recrawl_checked_at, self.next_recrawl = at, next_recrawl

    def log_host(self, host: Host) -> None:
        """Log the pace and the used budgets of a host, so that they outlive a restart."""
        host.changed = True
        self.pending.of(self.partitions[host.partition]).hosts.append(self.hosts.state_of(host))

    def note_quarantine(self, job: Job, host: Host, quarantine: Quarantine) -> None:
        """Log that a part of a host was closed for a job, or released."""
        job.quarantines[quarantine.host, quarantine.place] = quarantine
        self.pending.of(self.partitions[host.partition]).quarantines.append(quarantine)
