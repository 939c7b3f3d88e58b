"""`domains.parquet` of a graph, and the ranks that `crawl --ranks` reads from it."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pyarrow
import pyarrow.parquet
import pytest
from nephila.kernel.documents.budget_schema import MOST_RANKS
from nephila.programs.option_table import table
from nephila.programs.option_values import read
from nephila_tools.host_graph.domains import ranked_domains
from nephila_tools.host_graph.graph import HostLinks, ranked_hosts

from tests.tools.host_graph.test_host_graph import PAGES, crawl, row


def domains(edges, pages=()):
    """The ranked domains of (host, other host) → links."""
    links = [HostLinks(*pair, count) for pair, count in edges.items()]
    return ranked_domains(ranked_hosts(edges, Counter(pages), {}), links)


def write(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def option(value):
    """The value of --ranks as a run keeps it."""
    return read(*table()["ranks"], value)


def test_domains_are_ranked_by_the_domains_that_lead_to_them():
    edges = {("x.a.test", "www.b.test"): 2, ("y.a.test", "b.test"): 3, ("b.test", "c.test"): 1, ("d.test", "b.test"): 1}
    rows = domains(edges, ["b.test", "www.b.test", "d.test"])
    assert [(row.rank, row.domain, row.harmonic) for row in rows] == [
        (1, "b.test", 2.0),
        (2, "c.test", 2.0),
        (3, "a.test", 0.0),
        (4, "d.test", 0.0),
    ]
    first = rows[0]
    assert (first.domains_in, first.domains_out, first.links_in, first.links_out) == (2, 1, 6, 1)
    assert (first.hosts, first.pages) == (2, 2)


def test_a_domain_whose_hosts_link_to_each_other_gets_no_rank_by_them():
    """By hosts the farm is in front."""
    farm = {(f"x{a}.farm.test", f"x{b}.farm.test"): 1 for a in range(30) for b in range(30) if a != b}
    good = {(f"g{a}.test", f"g{a + b}.test"): 1 for a in range(4) for b in (1, 2)}
    edges = {**farm, **good, ("g0.test", "x0.farm.test"): 1}
    hosts = ranked_hosts(edges, Counter(), {})
    assert all(host.domain == "farm.test" for host in hosts[:30])
    ranks = {row.domain: row.rank for row in domains(edges)}
    assert ranks["farm.test"] > ranks["g4.test"]


@pytest.fixture
async def source(tmp_path):
    return await crawl(tmp_path / "crawl", [row(url, links) for url, links in PAGES.items()])


def test_the_export_of_one_crawl_is_the_order_of_another(source, tmp_path, nephila):
    """The run keeps the domains: it needs the file once."""
    graph = tmp_path / "graph"
    assert nephila("hosts", "--graph", str(graph), "--out", str(source)).code == 0
    domains = pyarrow.parquet.read_table(graph / "domains.parquet").to_pylist()
    assert [row["domain"] for row in domains] == ["far.test", "hub.test", "b.test", "a.test"]
    out = ("--out", str(tmp_path / "next"))
    nephila("crawl", "http://127.0.0.1:1/", "--ranks", str(graph), *out)
    shutil.rmtree(graph)
    ran = nephila("crawl", "--resume", *out)
    assert "ranks" not in ran.err
    run = json.loads((tmp_path / "next" / "run.json").read_text())
    assert (run["runs"], run["options"]["ranks"]) == (2, ["far.test", "hub.test", "b.test", "a.test"])


def test_the_file_itself_may_be_named(tmp_path):
    write(tmp_path / "domains.parquet", domain=["a.test", "b.test"], rank=[1, 2])
    assert option(str(tmp_path)) == option(tmp_path / "domains.parquet") == ["a.test", "b.test"]
    assert option("") == ""


def test_no_more_domains_are_read_than_a_job_may_have(tmp_path):
    names = [f"d{number}.test" for number in range(MOST_RANKS + 5)]
    write(tmp_path / "domains.parquet", domain=names)
    assert option(str(tmp_path)) == names[:MOST_RANKS]


def test_an_export_without_domains_gives_no_order(tmp_path):
    write(tmp_path / "domains.parquet", domain=pyarrow.array([], pyarrow.string()))
    assert option(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.write_text("a.test"), "is no Parquet file"),
        (lambda path: path.write_bytes(b""), "is no Parquet file"),
        (lambda path: path.mkdir(), "cannot be read"),
        (lambda path: write(path, host=["a.test"]), "has no column domain"),
        (lambda path: write(path, domain=[7]), "has domains that are no texts"),
        (lambda path: write(path, domain=["a.test", None]), "has domains that are no texts"),
        (lambda path: write(path, domain=["a.test", "not a domain"]), "'not a domain' is no domain"),
    ],
)
def test_another_file_gives_one_line(tmp_path, nephila, make, words):
    make(tmp_path / "domains.parquet")
    ran = nephila("crawl", "http://a.test/", "--ranks", str(tmp_path), "--out", str(tmp_path / "out"))
    assert ran.code == 2, ran.err
    assert words in ran.err
    assert len(ran.err.strip().splitlines()) == 1, ran.err
    assert not (tmp_path / "out").exists()
