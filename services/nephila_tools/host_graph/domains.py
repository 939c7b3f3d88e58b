"""Ranks of registrable domains, from the links between hosts.

A crawl is ordered by domains and not by hosts. Names below a domain are free, so a domain whose hosts link to each
other gives each of them a large centrality; links within a domain are no edges here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from nephila.kernel.net.public_suffix import domain_of

from nephila_tools.host_graph.vertices import by_rank

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
        ends = domain_of(edge.from_host), domain_of(edge.to_host)
        if ends[0] != ends[1]:
            links[ends] += edge.links
    return [
        RankedDomain(
            rank,
            domain.name,
            domain.harmonic,
            len(domain.predecessors),
            domain.successors,
            domain.links_in,
            domain.links_out,
            hosts_of[domain.name],
            pages[domain.name],
        )
        for rank, domain in enumerate(by_rank(hosts_of, links), 1)
    ]
