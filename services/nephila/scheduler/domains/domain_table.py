"""The domains of a broad crawl: which other domains link to each, and what each has cost. Pure.

Pace, robots.txt and queues are per host, and names below a registered domain are free: a wildcard domain with 10^5
hosts gets most of a broad crawl. Registered domains are not free, so the budget of a domain grows with the number of
other domains that link to it (IRLbot: Lee et al., WWW 2008). It is a share, not a number: the requests of the job times
the weight of the domain over the weights of all. A number would be too small for a long crawl and too large for a short
one. Domains of few hosts are never held back, because the pace of their hosts bounds them.

Memory is bounded: `MOST_DOMAINS` domains of some 400 bytes, `SOURCES` hashes of 4 bytes for each. The sources are an
exact set up to that number. A sketch would estimate more of them, but a few chosen names make it estimate millions.
"""

from __future__ import annotations

import heapq
import math
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from itertools import islice
from zlib import crc32

from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.messages import DomainState
from nephila.kernel.net.public_suffix import domain_of
from nephila.native import LinkedHosts

FEW_HOSTS = 8
"""Hosts of a domain that is not held back."""
FLOOR = 100
"""Requests of a domain that are always allowed: the shares of a crawl that begins mean nothing."""
SOURCES = 256
"""Domains that count as in-degree, at most."""
MOST_DOMAINS = 1 << 17
MOST_PAIRS = 1 << 16
"""Pairs of a domain and a host that it links to that are remembered; they are not counted again. 1 MB."""
LEAST_PARKED = 64
"""Hosts of a domain over its budget that are queued at least; beyond, as many as its budget has requests."""
LATEST = 8
"""Levels by which a domain comes later, at most."""
_CHANCES = 8
"""Domains that are looked at to forget one."""


def hash_of(name: str) -> int:
    """32 bits of a domain or host, equal in all runs."""
    return crc32(name.encode())


class Domain:
    """One registrable domain, as far as a job knows it."""

    __slots__ = ("failures", "hosts", "name", "parked", "requests", "sources")

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = 0
        """Pages, robots.txt files and look-ups."""
        self.failures = 0
        self.hosts = array("I")
        """Hashes of its first hosts; one more than `FEW_HOSTS` at most."""
        self.sources = array("I")
        """Rising hashes of the domains that link to it."""
        self.parked: dict[int, None] | None = None
        """Hosts that are held back, in order."""

    @property
    def weight(self) -> int:
        return 1 + len(self.sources)

    def add_source(self, source: int) -> bool:
        """Whether the source is new. O(log sources)."""
        sources = self.sources
        at = bisect_left(sources, source)
        if at < len(sources) and sources[at] == source:
            return False
        sources.insert(at, source)
        return True


class DomainTable:
    """The domains of one job in one frontier. Operations are O(log domains)."""

    def __init__(self) -> None:
        self.limit = 0
        """Largest use of a domain, in multiples of its share."""
        self.from_hosts = 0
        """Known hosts from which on budgets hold."""
        self.orders_hosts = False
        self.partitions = 1
        """Partitions of the system. A domain of many hosts has hosts in each of them, and other domains in one."""
        self.broad = False
        """Budgets hold."""
        self.domains: dict[str, Domain] = {}
        self.requests = self.weight = 0
        """Sums over the domains."""
        self.parked: dict[int, str] = {}
        """Hosts that are held back → their domain."""
        self.linked_hosts = LinkedHosts(MOST_PAIRS)
        """Links that were counted. A domain that was forgotten gets its links again when these are cleared."""
        self.left_out = 0
        """Links that were not admitted since the program started: their domain had enough hosts for its budget."""
        self._oldest: deque[str] = deque()
        """The domains, in the order in which one is forgotten."""
        self._by_level: list[tuple[float, str]] = []
        """A heap of domains with parked hosts; an entry may be out of date."""
        self._changed: dict[str, list[int]] = {}
        """Domains that changed since `take_changes`, with their new sources."""
        self._forgotten: list[str] = []

    def __len__(self) -> int:
        return len(self.domains)

    # ---- what is known

    def of(self, host_key: str) -> Domain:
        """The domain of a host, a new one if need be."""
        name = domain_of(host_key)
        domain = self.domains.get(name)
        if domain is None:
            if len(self.domains) >= MOST_DOMAINS:
                self._forget_one()
            domain = self._add(name)
            self._changed[name] = []
        return domain

    def get(self, host_key: str) -> Domain | None:
        return self.domains.get(domain_of(host_key))

    def note_broad(self) -> None:
        """Budgets hold from here on."""
        if not self.broad:
            self.broad = True
            self._changed[""] = []

    def link(self, domain: Domain, source: int) -> None:
        """Another domain links to this one."""
        if len(domain.sources) >= SOURCES or not domain.add_source(source):
            return
        self.weight += 1
        self._changed.setdefault(domain.name, []).append(source)
        if domain.parked:
            self._push(domain, domain.requests)

    def request(self, host_key: str, count: int) -> None:
        """So many requests are sent for a host."""
        domain = self.of(host_key)
        domain.requests += count
        self.requests += count
        if len(domain.hosts) <= FEW_HOSTS and (host := hash_of(host_key)) not in domain.hosts:
            domain.hosts.append(host)
        self._changed.setdefault(domain.name, [])

    def fail(self, host_key: str) -> None:
        """A fetch from a host failed."""
        domain = self.of(host_key)
        domain.failures += 1
        self._changed.setdefault(domain.name, [])

    def _add(self, name: str) -> Domain:
        domain = self.domains[name] = Domain(name)
        self.weight += 1
        self._oldest.append(name)
        return domain

    def _forget_one(self) -> None:
        """Forget the oldest domain of one host at most, or the last that is looked at. Domains with parked hosts
        stay."""
        for chance in range(1, _CHANCES + 1):
            domain = self.domains[self._oldest.popleft()]
            if not domain.parked and (len(domain.hosts) < 2 or chance == _CHANCES):
                self._drop(domain)
                return
            self._oldest.append(domain.name)

    def _drop(self, domain: Domain) -> None:
        del self.domains[domain.name]
        self.requests -= domain.requests
        self.weight -= domain.weight
        self._changed.pop(domain.name, None)
        self._forgotten.append(domain.name)

    # ---- budgets

    def budget(self, domain: Domain) -> float:
        """Requests that the domain may use for now; infinite where it is not held back."""
        if not self.broad or len(domain.hosts) <= FEW_HOSTS:
            return math.inf
        return max(FLOOR / self.partitions, self._level() * self._weight_here(domain))

    def _weight_here(self, domain: Domain) -> float:
        """The part of the weight that belongs to this partition."""
        return domain.weight / self.partitions if len(domain.hosts) > FEW_HOSTS else domain.weight

    def _level(self) -> float:
        return self.limit * self.requests / max(self.weight, 1)

    def is_over(self, domain: Domain) -> bool:
        return len(domain.hosts) > FEW_HOSTS and domain.requests >= self.budget(domain)

    def spent(self, host_key: str) -> str:
        """The budget that holds a host back, in words; empty: none."""
        domain = self.get(host_key)
        if domain is None or not self.is_over(domain):
            return ""
        return f"its domain {domain.name} has used {domain.requests:,} of {math.ceil(self.budget(domain)):,} requests"

    @property
    def may_refuse_hosts(self) -> bool:
        """Whether there can be a domain that takes no new host."""
        return len(self.parked) >= LEAST_PARKED

    def takes_hosts(self, domain: Domain) -> bool:
        """Whether a new host of the domain may be queued. Held hosts are bounded by what the budget can use."""
        parked = len(domain.parked or ())
        return parked < LEAST_PARKED or not self.is_over(domain) or parked < self.budget(domain)

    def lateness(self, host_key: str) -> int:
        """Levels by which a host comes later: one where its domain has used its share, one more with each doubling."""
        domain = self.get(host_key) if self.broad else None
        if domain is None or domain.requests < FLOOR:
            return 0
        used = int(domain.requests * self.weight / (self.requests * self._weight_here(domain)))
        return min(used.bit_length(), LATEST)

    # ---- hosts that are held back

    def park(self, domain: Domain, number: int) -> None:
        """Hold a host back until its domain may use more."""
        if domain.parked is None:
            domain.parked = {}
        if not domain.parked:
            self._push(domain, domain.requests)
        domain.parked[number] = None
        self.parked[number] = domain.name

    def release(self) -> list[int]:
        """Hosts that may be fetched from again: of each domain as many as its budget has requests left."""
        released: list[int] = []
        while self._by_level and self._by_level[0][0] < self._level():
            domain = self.domains.get(heapq.heappop(self._by_level)[1])
            if domain is None or not domain.parked:
                continue
            room = math.ceil(min(self.budget(domain) - domain.requests, len(domain.parked)))
            if room > 0:
                released += self._unpark(domain, room)
            if domain.parked:
                self._push(domain, domain.requests + max(room, 0))
        return released

    def release_all(self) -> list[int]:
        """All hosts that are held back: limits have changed."""
        released = list(self.parked)
        for domain in filter(None, map(self.domains.get, set(self.parked.values()))):
            domain.parked = None
        self.parked.clear()
        self._by_level.clear()
        return released

    def _unpark(self, domain: Domain, count: int) -> list[int]:
        assert domain.parked is not None
        numbers = list(islice(domain.parked, count))
        for number in numbers:
            del domain.parked[number], self.parked[number]
        return numbers

    def _push(self, domain: Domain, requests: int) -> None:
        heapq.heappush(self._by_level, (requests / self._weight_here(domain), domain.name))

    # ---- log

    def take_changes(self, uid: str) -> list[DomainState]:
        """The domains that changed since the last call."""
        states = [DomainState(uid, name, forgotten=True) for name in self._forgotten]
        for name, sources in self._changed.items():
            states.append(self._state(uid, self.domains[name], array("I", sources)) if name else DomainState(uid))
        self._forgotten.clear()
        self._changed.clear()
        return states

    def dump(self, uid: str) -> Iterator[DomainState]:
        """All domains, whole."""
        if self.broad:
            yield DomainState(uid)
        for name in self._oldest:
            domain = self.domains[name]
            yield self._state(uid, domain, domain.sources)

    @staticmethod
    def _state(uid: str, domain: Domain, sources: array[int]) -> DomainState:
        hosts = domain.hosts.tobytes()
        return DomainState(uid, domain.name, domain.requests, domain.failures, hosts, sources.tobytes())

    def restore(self, state: DomainState) -> None:
        """Apply a state of the log or of a snapshot."""
        if not state.domain:
            self.broad = True
            return
        domain = self.domains.get(state.domain)
        if state.forgotten:
            if domain is not None:
                self._oldest.remove(state.domain)
                self._drop(domain)
                self._forgotten.clear()
            return
        domain = domain or self._add(state.domain)
        self.requests += state.requests - domain.requests
        domain.requests, domain.failures = state.requests, state.failures
        domain.hosts = array("I", state.hosts)
        self.weight += sum(map(domain.add_source, array("I", state.sources)))

    def forget_use(self) -> None:
        """The requests count elsewhere: this part of a split partition is new."""
        self.requests = 0
        for domain in self.domains.values():
            domain.requests = domain.failures = 0

    def check(self) -> None:
        """Raise AssertionError when an invariant does not hold."""
        domains = self.domains
        assert sorted(self._oldest) == sorted(domains), "a domain is never forgotten"
        assert self.requests == sum(domain.requests for domain in domains.values()), "requests of domains"
        assert self.weight == sum(domain.weight for domain in domains.values()), "weights of domains"
        parked = {number: domain.name for domain in domains.values() for number in domain.parked or ()}
        assert parked == self.parked, "parked hosts and their domains differ"
        waiting = {name for _, name in self._by_level}
        assert set(parked.values()) <= waiting, "a domain is never released"


def table_of(document: JobSpec, table: DomainTable | None, partitions: int = 1) -> DomainTable | None:
    """The table of a job with this document in one of so many partitions; `table`: the one before. None where the job
    has no budget of domains."""
    domains = document.domains
    limit = domains.limit(document.scope.mode)
    if not limit:
        return None
    table = DomainTable() if table is None else table
    table.partitions = partitions
    table.limit, table.from_hosts, table.orders_hosts = limit, domains.from_hosts, domains.order == "domain"
    return table
