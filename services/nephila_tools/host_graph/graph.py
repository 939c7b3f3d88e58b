"""The graph of the hosts of a crawl: which host links to which, how central each is, and which copies which.

It is made from the table `links` and from the pages that storage has marked as near-copies. So it needs no memory in a
crawl, and has the links of pages that were stored, not of those that were only queued.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from nephila.kernel.net.public_suffix import domain_of
from nephila.native import UrlError, parse_url
from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.source import Source

from nephila_tools.broken_link_rows import check_links_stored
from nephila_tools.host_graph.vertices import Edges, by_rank

MIRROR_SHARE: Final = 0.5
"""A host of which more than this share of the stored pages are near-copies of pages of one other host is its mirror."""
MIRROR_PAGES: Final = 3
"""Near-copies that a mirror has at least."""


class HostLinks(NamedTuple):
    """One edge: links on pages of one host to URLs of another."""

    from_host: str
    to_host: str
    links: int


class RankedHost(NamedTuple):
    """One vertex."""

    rank: int
    """1 for the host with the largest centrality; hosts with the same stand in the order of their names."""
    host: str
    domain: str
    """Its registrable domain."""
    harmonic: float
    """Sum of 1 / distance over the hosts from which links lead to it."""
    hosts_in: int
    """Hosts that link to it,"""
    domains_in: int
    """and other registrable domains."""
    hosts_out: int
    links_in: int
    """Links from other hosts."""
    links_out: int
    pages: int
    """Stored pages."""
    near_copies: int
    """Stored pages that are near-copies of a page of another host; only jobs that look for them have some."""
    mirror_of: str
    """The host that it copies; empty: none."""


class HostGraph(NamedTuple):
    hosts: list[RankedHost]
    """By rank."""
    edges: list[HostLinks]
    """By the names of the hosts. Links within a host are no edges."""


def host_graph(source: Source, job: str | None = None) -> HostGraph:
    """The graph of all jobs, or of one. Raises `UserError` when no link is stored.

    O(links) time; memory for each edge between two hosts and for each host.
    """
    only = "AND pages.job = :job" if job is not None else ""
    values = {"job": job}
    with open_for_reading(source) as connection:
        check_links_stored(connection, source, job)
        pages, copies = _stored_pages(connection, only, values)
        edges = _edges(connection, only, values)
    return HostGraph(ranked_hosts(edges, pages, copies), [HostLinks(*pair, edges[pair]) for pair in sorted(edges)])


def ranked_hosts(edges: Edges, pages: Counter[str], copies: dict[str, Counter[str]]) -> list[RankedHost]:
    """The vertices: hosts with an edge and hosts with a stored page. `copies`: host → original host → near-copies."""
    names = {*pages, *(name for pair in edges for name in pair)}
    return [
        RankedHost(
            rank,
            name := host.name,
            domain_of(name),
            host.harmonic,
            len(host.predecessors),
            len({domain_of(other) for other in host.predecessors} - {domain_of(name)}),
            host.successors,
            host.links_in,
            host.links_out,
            pages[name],
            copies[name].total() if name in copies else 0,
            _original(pages[name], copies.get(name)),
        )
        for rank, host in enumerate(by_rank(names, edges), 1)
    ]


def _original(pages: int, copies: Counter[str] | None) -> str:
    """The host that a host with so many pages is a mirror of."""
    if not copies:
        return ""
    host, count = min(copies.items(), key=lambda item: (-item[1], item[0]))
    return host if count >= MIRROR_PAGES and count > MIRROR_SHARE * pages else ""


def _stored_pages(
    connection: ReadConnection, only: str, values: dict[str, str | None]
) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Pages by host, and near-copies by host and original host."""
    pages, copies = Counter[str](), defaultdict[str, Counter[str]](Counter)
    # A near-copy may be stored, or dropped by a job that keeps one page of each text: both are pages of the host.
    query = (
        "SELECT url, near_copy_of FROM pages"
        f" WHERE (outcome = 'stored' OR (outcome = 'dropped' AND near_copy_of <> '')) {only}"
    )
    for url, original in connection.execute(query, values):
        host = _host(url)
        pages[host] += 1
        if original and (other := _host(original)) != host:
            copies[host][other] += 1
    return pages, copies


def _edges(connection: ReadConnection, only: str, values: dict[str, str | None]) -> Edges:
    query = (
        "SELECT pages.url, links.to_url FROM links"
        f" JOIN pages ON pages.job = links.job AND pages.url_key = links.from_key {only}"
    )
    links = Counter(_host_pairs(connection.execute(query, values)))
    return {pair: count for pair, count in links.items() if pair[0] != pair[1] and all(pair)}


def _host_pairs(rows: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The hosts of each link. Links of a page follow each other, so the URL of a page is parsed once."""
    page, from_host = "", ""
    for url, target in rows:
        if url != page:
            page, from_host = url, _host(url)
        yield from_host, _host(target)


def _host(url: str) -> str:
    """Its host key; empty when it is no URL."""
    try:
        return parse_url(url).host_key
    except UrlError:
        return ""
