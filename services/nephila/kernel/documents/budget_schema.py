"""Budgets of a job for one host and for one registrable domain. Names below a registered domain are free, so pace and
budgets of hosts do not bound what a domain gets of a broad crawl."""

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from nephila.kernel.documents.field_types import Count, Duration, seconds
from nephila.kernel.documents.struct_reader import Section
from nephila.native import UrlError, parse_url

DomainOrder = Literal["domain", "host"]
MOST_RANKS: Final = 20_000
"""Domains with a rank, at most: some 350 KB of the document, a third of the largest message of Kafka."""


def _domain(text: str) -> str:
    try:
        parts = parse_url(f"http://{text}/")
    except UrlError:
        parts = None
    if parts is None or parts.path_query != "/" or "*" in parts.host_key or "@" in text:
        raise ValueError("is no domain like a.example")
    return parts.host_key


Domain = Annotated[str, Meta(min_length=1, max_length=253, extra={"what": "a domain", "check": _domain})]


class HostBudget(Section):
    """Limits of what the job spends on one host."""

    pages: Count = 0
    """Fetches of pages; 0 = no limit."""
    bytes: Annotated[int, Meta(ge=0, le=10**18)] = 0
    """Bytes received from the network; 0 = no limit."""
    time: Duration = "0"
    """Time spent in fetches; 0 = no limit."""
    queued: Count = 0
    """URLs in the queue of the host; 0 = no limit."""

    @property
    def limits(self) -> bool:
        """Whether anything is limited; "0" and "0s" are the same time."""
        return bool(self.pages or self.bytes or self.queued or seconds(self.time))


class DomainBudget(Section):
    """Limits of what a job with scope any spends on one registrable domain."""

    budget: Annotated[int, Meta(ge=0, le=1000)] = 2
    """Requests of a domain of many hosts, in multiples of its share: requests of the job times in-degree of the domain
    over the in-degrees of all domains. A domain that has used more is held back. 0 = no limit."""
    from_hosts: Count = 1000
    """Known hosts from which on the budget holds: the shares of a small crawl mean nothing."""
    order: DomainOrder = "domain"
    """Order of hosts under a budget: domain (hosts of a domain that has used its share come later) or host (the use
    of the domain has no effect)."""
    ranks: Annotated[list[Domain], Meta(max_length=MOST_RANKS)] = field(default_factory=list)
    """Registrable domains in the order of an earlier crawl, the highest rank first: their hosts come first, in steps
    of twice the rank, and hosts of other domains come last. Holds in every scope. `nephila crawl --ranks DIR` fills
    it."""

    def limit(self, mode: str) -> int:
        """The budget in a scope of this mode; 0: none."""
        return self.budget if mode == "any" else 0
