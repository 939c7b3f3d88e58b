"""The graph of one crawl orders the next: in one process, after a stop, and in each partition of groups."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from nephila.native import parse_url, partition_of
from nephila.scheduler.domains.domain_ranks import DomainRanks
from nephila.scheduler.group.partition_logs import PARTITIONS

from tests.e2e.web import Web, page, rows, run, run_json, serve

HOSTS, RANKED = 120, 90
"""Ranks come from a chain of links, which is shorter than the longest path that counts."""
SEEDS = [f"http://www.d{number * 7 % HOSTS}.test/" for number in range(HOSTS)]
BEGIN = 4
"""Fetches that may begin before all seeds are read."""


def town(request):
    """Domain n links to n + 1: the last one has the highest rank. Domains from RANKED on are not in the first crawl."""
    if request.path != "/":
        return None
    number = int(request.host.partition(":")[0].split(".")[1][1:])
    return page(f"http://www.d{number + 1}.test/") if number + 1 < RANKED else page()


def crawl(web: Web, *words: str, cwd: Path) -> None:
    line = ("--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0", "--ignore-robots")
    ran = run("crawl", *words, *line, "--scope", "any", "--per-address", "0", cwd=cwd, timeout=240)
    assert ran.returncode in (0, 3), ran.stderr


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """The graph of a crawl of the ranked domains."""
    with serve(town) as web:
        crawl(web, "http://www.d0.test/", "--links", cwd=tmp_path)
    assert len(rows(tmp_path)) == RANKED
    assert run("hosts", "--graph", "graph", "--out", "o", cwd=tmp_path).returncode == 0
    shutil.move(tmp_path / "o", tmp_path / "first")
    (tmp_path / "seeds").write_text("\n".join(SEEDS))
    return tmp_path


def levels(web: Web) -> list[int]:
    """The level of each page in the order of the requests."""
    ranks = DomainRanks([f"d{number}.test" for number in reversed(range(RANKED))])
    return [ranks.level(request.host) for request in web.requests]


def test_a_stopped_crawl_goes_on_in_the_order_of_the_graph_though_that_is_gone(graph):
    words = ("--workers", "0", "--concurrency", "1")
    with serve(town) as web:
        crawl(web, "--seeds", "seeds", "--ranks", "graph", "--max-pages", "20", *words, cwd=graph)
        before = len(web.requests)
        assert before < HOSTS / 2
        shutil.rmtree(graph / "graph")
        crawl(web, "--resume", "--max-pages", "0", *words, cwd=graph)
    assert len(rows(graph)) == HOSTS
    assert levels(web)[BEGIN:before] == sorted(levels(web)[BEGIN:before])
    # One page was under way.
    assert levels(web)[before + 1 :] == sorted(levels(web)[before + 1 :])
    assert len(run_json(graph)["options"]["ranks"]) == RANKED


def test_each_partition_of_the_groups_has_the_order(graph):
    words = ("--workers", "2", "--concurrency", "2")
    with serve(town) as web:
        crawl(web, "--seeds", "seeds", "--ranks", "graph", "--max-pages", "4", *words, cwd=graph)
        before = len(web.requests)
        crawl(web, "--resume", "--max-pages", "0", *words, cwd=graph)
    assert len(rows(graph)) == HOSTS
    by_partition: dict[int, list[int]] = {}
    for request, level in list(zip(web.requests, levels(web), strict=True))[before + 2 :]:
        key = parse_url(f"http://{request.host.partition(':')[0]}/").fingerprint
        by_partition.setdefault(partition_of(key, PARTITIONS), []).append(level)
    assert len(by_partition) == PARTITIONS
    assert list(by_partition.values()) == [sorted(sequence) for sequence in by_partition.values()]
