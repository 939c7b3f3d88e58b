"""A link farm in a broad crawl: it gets little, and the other hosts lose little. Four webs, 20,000 pages each."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from benchmarks.bench_farm import WEBS, crawl
from benchmarks.simulated_crawl import Web

PAGES = 20_000


@cache
def without_farm(web: Web) -> dict[str, Any]:
    return crawl(web, "no farm", PAGES)


@pytest.mark.full
@pytest.mark.parametrize("name", WEBS)
def test_a_farm_gets_little_and_good_hosts_keep_their_rate(name: str) -> None:
    web = WEBS[name]
    figures = crawl(web, "budgets", PAGES)
    assert figures["pages"] >= PAGES
    assert figures["farm_pages"] <= 0.02
    assert figures["farm_requests"] <= 0.05
    # Without the farm its address and the rate of links to it mean nothing.
    alone = without_farm(web._replace(one_address=False, every=20))
    assert figures["good_per_s"] >= 0.95 * alone["good_per_s"]


@pytest.mark.full
def test_a_farm_gets_little_of_a_crawl_of_many_partitions() -> None:
    figures = crawl(WEBS["addresses"], "budgets", PAGES, partitions=16)
    assert figures["farm_pages"] <= 0.02
    assert figures["farm_requests"] <= 0.05


def test_without_budgets_a_farm_gets_much() -> None:
    figures = crawl(WEBS["few-seeds"], "no budget", 2_000)
    assert figures["farm_requests"] > 0.3
