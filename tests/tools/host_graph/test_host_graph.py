"""The graph of the hosts of a crawl, and its files."""

from __future__ import annotations

import random
import sqlite3
from collections import deque
from contextlib import closing

import pyarrow.parquet
import pytest
from nephila.kernel.messages import Outcome
from nephila.kernel.runtime.errors import UserError
from nephila.native import parse_url
from nephila_tools.host_graph.graph import HostLinks, host_graph
from nephila_tools.host_graph.harmonic import harmonic_centrality

from tests.links import outlinks
from tests.storage.storage_rig import record, running

PAGES = {
    "http://a.test/": ["http://hub.test/", "http://hub.test/x", "http://a.test/more"],
    "http://a.test/more": ["http://hub.test/", "http://www.b.test/"],
    "http://www.b.test/": ["http://hub.test/"],
    "http://hub.test/": ["http://far.test:8080/"],
}


def row(url, links=(), **fields):
    """A record of a page with links."""
    return record(0, url=url, url_key=parse_url(url).fingerprint, links=outlinks(*links) if links else None, **fields)


async def crawl(directory, rows, copies=None):
    """A directory with rows; `copies`: URL → the URL of which it is a near-copy."""
    async with running(directory) as rig:
        rig.send(*rows)
        await rig.storage.flush()
    with closing(sqlite3.connect(directory / "nephila.db")) as database, database:
        database.executemany(
            "UPDATE pages SET near_copy_of = ? WHERE url = ?", [(o, u) for u, o in (copies or {}).items()]
        )
    return directory


@pytest.fixture
async def source(tmp_path):
    return await crawl(tmp_path / "crawl", [row(url, links) for url, links in PAGES.items()])


def slow_centrality(predecessors):
    """By a search in breadth from each vertex."""
    sums = []
    for vertex in range(len(predecessors)):
        distances, queue = {vertex: 0}, deque([vertex])
        while queue:
            near = queue.popleft()
            for other in predecessors[near]:
                if other not in distances:
                    distances[other] = distances[near] + 1
                    queue.append(other)
        sums.append(sum(1 / distance for distance in distances.values() if distance))
    return sums


@pytest.mark.parametrize("seed", range(20))
def test_centrality_equals_a_search_from_each_vertex(seed):
    draw = random.Random(seed)
    count = draw.randrange(1, 40)
    predecessors = [draw.sample(range(count), draw.randrange(min(4, count))) for _ in range(count)]
    assert harmonic_centrality(predecessors) == pytest.approx(slow_centrality(predecessors))


def test_a_sample_of_the_sources_estimates_a_large_graph():
    """A star: the centre is one step from all others. A sample is the same each time."""
    predecessors = [list(range(1, 5000)), *([] for _ in range(4999))]
    first = harmonic_centrality(predecessors, sources=500)
    assert first == harmonic_centrality(predecessors, sources=500)
    assert first[0] == pytest.approx(4999, rel=0.01)
    assert max(first[1:]) == 0


def test_an_empty_graph():
    assert harmonic_centrality([]) == []


def test_edges_are_links_between_two_hosts(source):
    graph = host_graph(source)
    assert graph.edges == [
        HostLinks("a.test", "hub.test", 3),
        HostLinks("a.test", "www.b.test", 1),
        HostLinks("hub.test", "far.test:8080", 1),
        HostLinks("www.b.test", "hub.test", 1),
    ]


def test_hosts_by_their_centrality(source):
    """hub.test: two hosts at distance 1. far.test: one at 1, two at 2. Same values stand by name."""
    hosts = host_graph(source).hosts
    assert [(host.rank, host.host, host.harmonic) for host in hosts] == [
        (1, "far.test:8080", 2.0),
        (2, "hub.test", 2.0),
        (3, "www.b.test", 1.0),
        (4, "a.test", 0.0),
    ]
    hub = hosts[1]
    assert (hub.hosts_in, hub.domains_in, hub.hosts_out, hub.links_in, hub.links_out, hub.pages) == (2, 2, 1, 4, 1, 1)


async def test_links_within_a_domain_are_no_links_of_another_domain(tmp_path):
    directory = await crawl(tmp_path / "crawl", [row("http://x.b.test/", ["http://www.b.test/"])])
    (host,) = (host for host in host_graph(directory).hosts if host.host == "www.b.test")
    assert (host.hosts_in, host.domains_in) == (1, 0)


async def test_a_host_of_near_copies_is_a_mirror(tmp_path):
    """Near-copies are stored or dropped, by the job. A host with few of them, or with many originals, is none."""
    copies = {f"http://copy.test/{n}": f"http://first.test/{n}" for n in range(3)}
    copies |= {f"http://two.test/{n}": f"http://first.test/{n}" for n in range(2)}
    copies |= {f"http://many.test/{n}": f"http://o{n}.test/" for n in range(9)}
    copies |= {f"http://inner.test/{n}": f"http://inner.test/{n + 1}" for n in range(9)}
    dropped = {f"http://drop.test/{n}": f"http://first.test/{n}" for n in range(4)}
    rows = [row(url) for url in copies] + [row("http://copy.test/own", ["http://first.test/"])]
    rows += [row(url, outcome=Outcome.DROPPED, reason="near_copy") for url in dropped]
    directory = await crawl(tmp_path / "crawl", rows, copies | dropped)
    hosts = {host.host: host for host in host_graph(directory).hosts}
    assert {name: host.mirror_of for name, host in hosts.items() if host.mirror_of} == {
        "copy.test": "first.test",
        "drop.test": "first.test",
    }
    assert (hosts["copy.test"].near_copies, hosts["copy.test"].pages, hosts["inner.test"].near_copies) == (3, 4, 0)


async def test_a_crawl_without_links_says_how_to_store_them(tmp_path):
    with pytest.raises(UserError, match="has no links; crawl with --links"):
        host_graph(await crawl(tmp_path / "crawl", [row("http://a.test/")]))


def test_another_job_has_no_links(source):
    with pytest.raises(UserError, match="has no links"):
        host_graph(source, "another")


def test_the_command_writes_its_files(source, tmp_path, nephila):
    ran = nephila("hosts", "--graph", str(tmp_path / "graph"), "--out", str(source))
    assert ran.code == 0, ran.err
    assert "4 hosts and 4 links between two of them" in ran.err
    hosts = pyarrow.parquet.read_table(tmp_path / "graph" / "hosts.parquet").to_pylist()
    assert hosts[1] | {"rank": 2, "host": "hub.test", "domain": "hub.test", "mirror_of": ""} == hosts[1]
    edges = pyarrow.parquet.read_table(tmp_path / "graph" / "host-links.parquet").to_pylist()
    assert edges[0] == {"from_host": "a.test", "to_host": "hub.test", "links": 3}
    files = sorted(path.name for path in (tmp_path / "graph").iterdir())
    assert files == ["domains.parquet", "host-links.parquet", "hosts.parquet"]


def test_the_command_says_what_is_wrong(source, tmp_path, nephila):
    (tmp_path / "file").write_text("")
    ran = nephila("hosts", "--graph", str(tmp_path / "file"), "--out", str(source))
    assert (ran.code, "cannot write the graph" in ran.err) == (1, True), ran.err
    ran = nephila("hosts", "--graph", str(tmp_path / "graph"), "--server", "http://127.0.0.1:1")
    assert (ran.code, "give its directory with --out" in ran.err) == (2, True), ran.err
