"""Ranks of registrable domains, from the links between hosts.

A crawl is ordered by domains and not by hosts. Names below a domain are free, so a domain whose hosts link to each
other gives each of them a large centrality; links within a domain are no edges here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from nephila.kernel.net.public_suffix import domain_of

from nephila_tools.host_graph.harmonic import harmonic_centrality

if TYPE_CHECKING:
    from nephila_tools.host_graph.graph import HostLinks, RankedHost


class RankedDomain(NamedTuple):
    """One domain."""

    rank: int
    """1 for the domain with the largest centrality; domains with the same stand in the order of their names."""
    domain: str
    harmonic: float
    """Sum of 1 / distance over the domains from which links lead to it."""
    domains_in: int
    """Domains that link to it."""
    domains_out: int
    links_in: int
    """Links from other domains."""
    links_out: int
    hosts: int
    pages: int
    """Stored pages."""


def ranked_domains(hosts: Iterable[RankedHost], edges: Iterable[HostLinks]) -> list[RankedDomain]:
    """The domains of a graph by rank. Complexity as of `harmonic_centrality`."""
    pages, hosts_of = Counter[str](), Counter[str]()
    for host in hosts:
        hosts_of[host.domain] += 1
        pages[host.domain] += host.pages
    links = Counter[tuple[str, str]]()
    for edge in edges:
        links[domain_of(edge.from_host), domain_of(edge.to_host)] += edge.links
    names = sorted(hosts_of)
    numbers = {name: number for number, name in enumerate(names)}
    predecessors: list[list[int]] = [[] for _ in names]
    domains_out, links_in, links_out = Counter[str](), Counter[str](), Counter[str]()
    for (from_domain, to_domain), count in sorted(links.items()):
        if from_domain != to_domain:
            predecessors[numbers[to_domain]].append(numbers[from_domain])
            domains_out[from_domain] += 1
            links_out[from_domain] += count
            links_in[to_domain] += count
    centrality = harmonic_centrality(predecessors)
    order = sorted(range(len(names)), key=lambda number: (-centrality[number], names[number]))
    return [
        RankedDomain(
            rank,
            name := names[number],
            centrality[number],
            len(predecessors[number]),
            domains_out[name],
            links_in[name],
            links_out[name],
            hosts_of[name],
            pages[name],
        )
        for rank, number in enumerate(order, 1)
    ]
