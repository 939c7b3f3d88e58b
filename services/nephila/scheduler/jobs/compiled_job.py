"""The document of a job, compiled once for each desired state: every URL needs some of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from nephila.kernel.documents import fetch_windows
from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_document import keeps_routes, urls_of
from nephila.kernel.documents.job_schema import RENDERS, JobSpec, Traps
from nephila.kernel.messages import HostUse, Render
from nephila.native import UrlError, parse_url
from nephila.scheduler.domains.domain_ranks import DomainRanks, ranks_of
from nephila.scheduler.jobs.strategies import STRATEGIES, StrategyRow
from nephila.scheduler.politeness.host_policy import HostPolicies
from nephila.scheduler.recrawl.policy import RecrawlPolicy


@dataclass(frozen=True, slots=True)
class HostLimits:
    """What a job may use and queue of each host; 0 means no limit."""

    pages: int
    bytes: int
    time_s: float
    queued: int

    @property
    def counts_use(self) -> bool:
        """Whether fetches are counted."""
        return bool(self.pages or self.bytes or self.time_s)

    def spent(self, use: HostUse | None) -> str:
        """The limit that a host has reached, in words; the empty string for none."""
        if use is None:
            return ""
        if self.pages and use.pages >= self.pages:
            return f"the budget of {self.pages:,} fetches per host is spent"
        if self.bytes and use.bytes >= self.bytes:
            return f"the budget of {self.bytes:,} bytes per host is spent"
        if self.time_s and use.time_s >= self.time_s:
            return f"the budget of {self.time_s:g} s per host is spent"
        return ""


@dataclass(frozen=True)
class CompiledJob:
    document: JobSpec
    routes: bool
    """Fragments of URLs that name a view of the page count."""
    windows: fetch_windows.Windows | None
    """Hours in which the job fetches; None: all."""
    strategy: StrategyRow
    policies: HostPolicies
    ignore_robots: bool
    picks_links: bool
    """Whether not every new link is fetched."""
    host_limits: HostLimits
    traps: Traps
    recrawl: RecrawlPolicy
    render: Render
    ranks: DomainRanks | None
    """Order of domains; None: none."""

    @cached_property
    def seed_hosts(self) -> frozenset[str]:
        """Hosts of the seeds in the document. O(seeds), once."""
        return frozenset(filter(None, map(_host_key, urls_of(self.document))))


def compiled_job(document: JobSpec) -> CompiledJob:
    scope, budget = document.scope, document.host_budget
    windows = tuple(document.windows)
    return CompiledJob(
        document,
        routes=keeps_routes(document),
        windows=fetch_windows.compiled(windows, document.time_zone) if windows else None,
        strategy=STRATEGIES[document.strategy],
        policies=HostPolicies(document.politeness),
        ignore_robots=not document.politeness.respect_robots,
        picks_links=bool(document.record_links or scope.links_per_page or scope.links_per_level),
        host_limits=HostLimits(budget.pages, budget.bytes, seconds(budget.time), budget.queued),
        traps=document.traps,
        recrawl=RecrawlPolicy(document.recrawl, document.schedule, document.time_zone),
        render=RENDERS[document.render],
        ranks=ranks_of(tuple(document.domains.ranks)) if document.domains.ranks else None,
    )


def _host_key(url: str) -> str:
    try:
        return parse_url(url).host_key
    except UrlError:
        return ""
