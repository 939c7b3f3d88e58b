"""Hosts with queued URLs or requests under way, and why each waits. Pure; changes nothing.

Cost: O(`LOOKED_AT`), some 10 ms, in which a running program is blocked. A host whose object is not in memory has no
pace here: it waits for its instant in the heap, or is ready.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, Final, Literal

import msgspec
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.politeness.recent_fetches import RecentNumbers

from nephila_control.explain.facts import PauseCause, pause_cause

LOOKED_AT: Final = 5_000
"""Hosts of each kind that are looked at, at most, in all partitions of a program."""
JOBS: Final = 5
"""Jobs that are named for a host."""
Why = Literal["in_flight", "ready", "address", "job", "budget", "domain", "idle"] | PauseCause


class ListedHost(msgspec.Struct, kw_only=True):
    """A host as it is listed."""

    name: str
    why: Why
    wait_s: float
    """Seconds until its next request; 0: it waits for no instant."""
    queued: int
    in_flight: int
    delay_s: float
    address: str
    jobs: list[str]
    recent: RecentNumbers
    domain: str = ""
    """The budget of the domain that holds the host back, in words."""
    rank: int = 0
    """Rank of its domain by `domains.ranks`, the highest one of its jobs; 0: none."""
    least_delay_s: float = 0.0
    """Shortest pause between two requests that a person has set; 0 where there is none."""
    held_s: float = 0.0
    """Seconds until the end of the pause that a person has set."""


class HostQuery(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The choice and the order of hosts. It travels to schedulers as JSON."""

    jobs: Collection[str] | None = None
    """Hosts with queued URLs of one of these jobs; None: hosts of all jobs."""
    search: str = ""
    """Part of the name."""
    name: str = ""
    """This host alone, also one without a queue."""
    sort: "HostSort" = "next"
    limit: int = 50


class HostRows(msgspec.Struct, kw_only=True):
    """The first hosts of some partitions, in the order of the query."""

    hosts: list[ListedHost]
    total: int
    """Hosts that were looked at and fit the query."""


def host_rows(dispatchers: Sequence[Dispatcher], now: float, query: HostQuery) -> HostRows:
    """Of the partitions of one program. They share LOOKED_AT, but each looks at as many hosts as are listed."""
    looked_at = max(LOOKED_AT // max(len(dispatchers), 1), query.limit)
    lists = [host_list(dispatcher, now, query, looked_at) for dispatcher in dispatchers]
    return first_rows([HostRows(hosts=hosts, total=len(hosts)) for hosts in lists], query)


def first_rows(parts: Iterable[HostRows], query: HostQuery) -> HostRows:
    """Merges the rows of several partitions. A host that two schedulers have while its partition moves is listed
    once."""
    parts = list(parts)
    hosts = {host.name: host for part in parts for host in part.hosts}
    ordered = sorted(hosts.values(), key=SORTS[query.sort])
    return HostRows(hosts=ordered[: query.limit], total=sum(part.total for part in parts))


def host_list(
    dispatcher: Dispatcher, now: float, query: HostQuery | None = None, looked_at: int = LOOKED_AT
) -> list[ListedHost]:
    """All hosts of one partition that fit. `looked_at`: hosts of each kind that are looked at, at most."""
    query = query or HostQuery()
    frontier, search = dispatcher.frontier, query.search.lower()
    jobs = None if query.jobs is None else {frontier.jobs[job].number for job in query.jobs if job in frontier.jobs}
    causes = _one(dispatcher, now, query.name) if query.name else _numbers(dispatcher, now, looked_at)
    if search and not query.name:  # a whole name is found among any number of hosts
        causes |= {number: cause for number, cause in _one(dispatcher, now, search).items() if cause[0] != "idle"}
    listed = []
    for number, (why, at) in causes.items():
        key = frontier.store.name(number)
        is_listed = jobs is None or any(job in jobs for job, _ in frontier.store.jobs(number))
        if is_listed and search in key:
            listed.append(_listed(dispatcher, now, number, key, why, max(at - now, 0.0) if at else 0.0))
    return sorted(listed, key=SORTS[query.sort])


def _one(dispatcher: Dispatcher, now: float, name: str) -> dict[int, tuple[Why, float]]:
    """What one host waits for; empty for a host that the frontier does not have. O(jobs)."""
    frontier = dispatcher.frontier
    readiness, number = frontier.readiness, frontier.store.find(name)
    if number < 0:
        return {}
    host, at = frontier.hosts.hot.get(number), frontier.store.ready_at(number)
    queues = [job.queue for job in frontier.jobs.values()]
    states: list[tuple[Why, bool]] = [
        ("in_flight", host is not None and host.in_flight > 0),
        ("budget", any(number in queue.over_budget_hosts for queue in queues)),
        ("domain", any(number in queue.held_back for queue in queues)),
        ("job", any(number in queue.waiting_hosts for queue in queues)),
        ("address", number in readiness.waiting_for_address),
        ("ready", number in readiness.ready.by_host or (at is not None and at <= now)),
        (_cause(dispatcher, number), at is not None),
    ]
    why: Why = next((why for why, holds in states if holds), "idle")
    return {number: (why, at if at is not None and at > now else 0.0)}


def _numbers(dispatcher: Dispatcher, now: float, looked_at: int) -> dict[int, tuple[Why, float]]:
    """Number of a host → what it waits for, and the instant if there is one. A host is listed once, by the first
    reason that holds."""
    frontier = dispatcher.frontier
    readiness = frontier.readiness
    causes: dict[int, tuple[Why, float]] = {}
    for number, host in islice(frontier.hosts.hot.items(), LOOKED_AT):
        if host.in_flight:
            causes[number] = "in_flight", 0.0
    for job in frontier.jobs.values():
        for number in islice(job.queue.over_budget_hosts, looked_at):
            causes.setdefault(number, ("budget", 0.0))
        for number in islice(job.queue.held_back, looked_at):
            causes.setdefault(number, ("domain", 0.0))
        for number in islice(job.queue.waiting_hosts, looked_at):
            causes.setdefault(number, ("job", 0.0))
    for number in islice(readiness.waiting_for_address, looked_at):
        causes.setdefault(number, ("address", 0.0))
    for number in islice(readiness.ready.hosts(), looked_at):
        causes.setdefault(number, ("ready", 0.0))
    for number, at in frontier.store.scheduled(looked_at):
        causes.setdefault(number, ("ready", 0.0) if at <= now else (_cause(dispatcher, number), at))
    return causes


def _cause(dispatcher: Dispatcher, number: int) -> Why:
    host = dispatcher.frontier.hosts.hot.get(number)
    return pause_cause(dispatcher, host, None) if host is not None else "delay"


def _listed(dispatcher: Dispatcher, now: float, number: int, name: str, why: Why, wait_s: float) -> ListedHost:
    frontier = dispatcher.frontier
    host = frontier.hosts.hot.get(number)
    numbered = frontier.jobs.numbered
    jobs = [numbered[job] for job, _ in frontier.store.jobs(number) if job in numbered]
    ranks = [job.compiled.ranks.rank(name) for job in jobs if job.compiled.ranks is not None]
    return ListedHost(
        name=name,
        why=why,
        wait_s=round(wait_s, 3),
        queued=frontier.store.queued(number),
        in_flight=host.in_flight if host is not None else 0,
        delay_s=round(frontier.hosts.delay_s(host, None), 3) if host is not None else 0.0,
        address=host.address if host is not None else "",
        jobs=sorted(job.uid for job in jobs)[:JOBS],
        least_delay_s=host.pace.least_delay_s if host is not None else 0.0,
        held_s=round(max(host.pace.held_until - now, 0.0), 3) if host is not None else 0.0,
        recent=host.recent.numbers(now) if host is not None and host.recent is not None else RecentNumbers(),
        domain=_domain(frontier, number, name) if why == "domain" else "",
        rank=min(filter(None, ranks), default=0),
    )


def _domain(frontier: Frontier, number: int, name: str) -> str:
    tables = (job.domains for job in frontier.jobs.with_domains.values())
    return next((table.spent(name) for table in tables if table is not None and number in table.parked), "")


def _next_first(listed: Any) -> tuple[int, float, str]:
    rank = 0 if listed.why == "in_flight" else 1 if listed.wait_s or listed.why == "ready" else 2
    return rank, listed.wait_s, listed.name


def _most_first(number: Callable[[Any], float]) -> "Order":
    return lambda listed: (-number(listed), listed.name)


HostSort = Literal["next", "name", "queued", "delay", "latency", "errors", "rate"]
Order = Callable[[Any], tuple[Any, ...]]
"""Key of a `ListedHost`, or of another object with its fields."""
SORTS: Final[dict[HostSort, Order]] = {
    "next": _next_first,
    "name": lambda listed: (listed.name,),
    "queued": _most_first(lambda listed: listed.queued),
    "delay": _most_first(lambda listed: listed.delay_s),
    "latency": _most_first(lambda listed: listed.recent.latency_p95_s),
    "errors": _most_first(lambda listed: listed.recent.error_share),
    "rate": _most_first(lambda listed: listed.recent.rate),
}
"""next: requests under way first, then by the instant of the next request; hosts without an instant are last. name: by
name. The others have the largest number first."""
