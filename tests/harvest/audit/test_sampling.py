"""Stratified samples: places per stratum, independence of the order, and samples of later crawls."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nephila_harvest.audit.sampling import Candidate, allocate, directory_of, draw


def page(number: int, directory: str = "news", version: str = "v") -> Candidate:
    """A page of a directory."""
    return Candidate("j", f"{number:032x}", "", -1, version, f"http://a.test/{directory}/{number}", "")


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.integers(1, 1000), min_size=1, max_size=30), st.integers(1, 500)
)
def test_places_are_proportional_and_each_stratum_has_one(sizes, places):
    """All places are used, no stratum gets more than it has, and none differs by more than one from its share."""
    given_places = allocate(sizes, places)
    assert sum(given_places.values()) == min(places, sum(sizes.values()))
    assert all(1 <= count <= sizes[name] for name, count in given_places.items())
    assert len(given_places) == min(places, len(sizes))
    if places < len(sizes):
        assert min(sizes[name] for name in given_places) >= max(
            sizes[name] for name in sizes if name not in given_places
        )


def test_a_large_stratum_gets_its_share():
    """300 places over 9,000, 900 and 100 pages."""
    assert allocate({"a": 9000, "b": 900, "c": 100}, 300) == {"a": 268, "b": 28, "c": 4}


def test_the_order_of_the_rows_does_not_matter():
    """The same seed draws the same pages; another seed draws others."""
    pages = [page(number, random.Random(number).choice("abc")) for number in range(1000)]
    shuffled = random.Random(1).sample(pages, len(pages))
    first = draw(lambda: iter(pages), "directory", 50, "s")
    assert draw(lambda: iter(shuffled), "directory", 50, "s").drawn == first.drawn
    assert draw(lambda: iter(pages), "directory", 50, "t").drawn != first.drawn


def test_every_page_has_the_same_chance():
    """Over many seeds no page is drawn much more often than another."""
    pages = [page(number) for number in range(20)]
    times = dict.fromkeys(pages, 0)
    for seed in range(2000):
        for one in draw(lambda: iter(pages), "directory", 5, str(seed)).drawn["a.test/news"]:
            times[one] += 1
    # 500 each on average, standard deviation 19.4; six deviations.
    assert all(abs(count - 500) < 117 for count in times.values())


def test_the_sample_of_a_grown_crawl_keeps_most_pages():
    """So that most labels of the last run count again."""
    pages = [page(number) for number in range(1000)]
    grown = pages + [page(number) for number in range(1000, 1100)]
    before = set(draw(lambda: iter(pages), "directory", 100, "s").drawn["a.test/news"])
    after = set(draw(lambda: iter(grown), "directory", 100, "s").drawn["a.test/news"])
    assert len(before & after) >= 80


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        ("http://a.test/news/2026/x", "a.test/news"),
        ("https://a.test:8443/news/", "a.test:8443/news"),
        ("http://a.test/page.html", "a.test/"),
        ("http://a.test/", "a.test/"),
    ],
)
def test_directory(url, directory):
    """Host and first directory."""
    assert directory_of(url) == directory
