"""Budgets of domains in the engine: links are counted, requests charged, and hosts of a domain over its budget held
back. `domains/domain_table.py` decides. Pure.

A job without a table costs one comparison at each of these points.
"""

from __future__ import annotations

from collections.abc import Iterable

from nephila.kernel.messages import DomainState, Outlinks
from nephila.kernel.net.public_suffix import domain_of
from nephila.kernel.pages.chosen_links import only
from nephila.scheduler.domains.domain_table import DomainTable, hash_of
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.frontier.host_state import Host
from nephila.scheduler.jobs.job import Job
from nephila.scheduler.jobs.queue_entry import host_of


def count_links(frontier: Frontier, table: DomainTable, links: Outlinks) -> Outlinks:
    """Count the domains that a page links to; returns its links without those to new hosts of domains that have enough
    hosts for their budgets. Such links are not seen, and are found again. 2 µs for a page whose domain has linked to
    these hosts before, while few hosts are held back; else O(links), 1 µs for each host."""
    if not table.broad and len(frontier.store) * frontier.partition_slice.of >= table.from_hosts:
        table.note_broad()
    own_host = host_of(links.parent_url) if links.parent_url else ""
    own = domain_of(own_host) if own_host else ""
    source = hash_of(own)
    if first := table.linked_hosts.first(source, links.fingerprints):
        for host_key in _host_keys(links, first):
            domain = table.of(host_key)
            if own and domain.name != own:
                table.link(domain, source)
    return _without_full_domains(frontier, table, links, own_host) if table.may_refuse_hosts else links


def _without_full_domains(frontier: Frontier, table: DomainTable, links: Outlinks, own_host: str) -> Outlinks:
    """The links without those to new hosts of domains that have enough hosts for their budgets."""
    hosts = _host_keys(links, range(len(links.fingerprints) // 16))
    full = set()
    for host_key in set(hosts):
        if host_key == own_host or table.takes_hosts(table.of(host_key)):
            continue
        if frontier.store.find(host_key) < 0:
            full.add(host_key)
    if not full:
        return links
    chosen = [i for i, host in enumerate(hosts) if host not in full]
    table.left_out += len(hosts) - len(chosen)
    return only(links, chosen)


def _host_keys(links: Outlinks, indices: Iterable[int]) -> list[str]:
    urls, spans = links.urls, memoryview(links.host_spans).cast("I")
    return [urls[spans[2 * i] : spans[2 * i + 1]].decode() for i in indices]


def hold_back(frontier: Frontier, job: Job, table: DomainTable, host: Host) -> bool:
    """Hold a host back whose domain is over its budget; returns whether it is. The page of a robots.txt that has been
    fetched is fetched too."""
    if not table.broad or host.number in frontier.readiness.prepared.by_number:
        return False
    domain = table.of(host.key)
    if not table.is_over(domain):
        return False
    table.park(domain, host.number)
    if len(frontier.jobs) > 1:
        frontier.readiness.schedule(host.number)  # other jobs may have URLs there
    return True


def charge(job: Job, host: Host) -> None:
    """A request for a host is sent, after a look-up where its address is unknown."""
    if job.domains is not None:
        job.domains.request(host.key, 1 if host.address else 2)


def end_turn(frontier: Frontier) -> None:
    """Schedule hosts that may be fetched from again; log what has changed. O(changed domains)."""
    for job in frontier.jobs.with_domains.values():
        table = job.domains
        if table is None:
            continue
        for number in table.release():
            frontier.readiness.schedule(number)
        if states := table.take_changes(job.uid):
            frontier.pending.of(frontier.partitions[0]).domains.extend(states)


def restore_domain(frontier: Frontier, state: DomainState) -> None:
    """Apply a logged state of a domain. No effect where its job is deleted, or has no budgets of domains now."""
    job = frontier.jobs.get(state.job)
    if job is not None and job.domains is not None:
        job.domains.restore(state)
