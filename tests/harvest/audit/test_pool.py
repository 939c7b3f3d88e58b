"""The part of a crawl from which a sample is drawn: by the hashes of URLs behind the seed's."""

from __future__ import annotations

import sqlite3

import pytest
from nephila.native import parse_url
from nephila.storage.ledgers.read_connection import open_for_reading
from nephila_harvest.audit.pool import pool
from nephila_harvest.audit.session import draw_sample
from nephila_harvest.audit.store import open_store

from tests.storage.storage_rig import record, running

PAGES = 60


@pytest.fixture
async def source(database_url, tmp_path):
    """Pages of one large host and of many small ones."""
    async with running(tmp_path, store=database_url) as rig:
        for number in range(PAGES):
            url = f"http://{'large' if number % 2 else f'h{number}'}.test/{number}"
            rig.send(record(number, url=url, url_key=parse_url(url).fingerprint, text=b"text", job=f"j{number % 3}"))
        await rig.storage.flush()
    return database_url or tmp_path


def urls(source, seed, most, job=""):
    """Of the pages of a part."""
    with open_for_reading(source) as rows:
        found = pool(rows, "pages", job, seed, most)
    return None if found is None else [one.url for one in found.candidates]


def test_a_part_has_its_number_of_pages_once_each(source):
    """Wherever the seed begins."""
    for seed in range(20):
        found = urls(source, str(seed), 25)
        assert len(found) == len(set(found)) == 25
    assert urls(source, "s", 25) == urls(source, "s", 25)
    assert set(urls(source, "s", 10)) < set(urls(source, "s", 25))
    assert urls(source, "s", PAGES) is None
    assert all(url in urls(source, "s", 25) for url in urls(source, "s", 25, "j1"))


def test_each_page_has_the_same_chance(source):
    """Those of a large host and those of small ones."""
    times = {}
    for seed in range(200):
        for url in urls(source, str(seed), 15):
            times[url] = times.get(url, 0) + 1
    large = sum(count for url, count in times.items() if "large" in url)
    assert len(times) == PAGES
    assert 1200 < large < 1800


def test_the_sizes_of_strata_are_estimates(source):
    """Twenty fetches stand for sixty; strata without a page in the sample are one."""
    info, found = draw_sample(source, size=10, by="job", kind="pages", name="n", seed="s", job="", most=20)
    assert sum(len(drawn) for drawn in found.drawn.values()) == 10
    assert sum(found.sizes.values()) == PAGES
    with open_store(source) as store:
        assert sum(one.size for one in store.counts(info.name)) == PAGES


async def test_items_are_drawn_by_their_pages(tmp_path):
    """All items of a page that is in the part."""
    async with running(tmp_path) as rig:
        for number in range(9):
            url = f"http://h{number}.test/"
            rig.send(record(number, url=url, url_key=parse_url(url).fingerprint, job="j"))
        await rig.storage.flush()
    with sqlite3.connect(tmp_path / "nephila.db") as database:
        database.execute("INSERT INTO items SELECT job, url_key, 'r', 1, 0, '{}' FROM pages")
        database.execute("INSERT INTO items SELECT job, url_key, 'r', 1, 1, '{}' FROM pages")
    with open_for_reading(tmp_path) as rows:
        found = pool(rows, "items", "", "s", 3)
    assert len(found.candidates) == 6
    assert {one.ordinal for one in found.candidates} == {0, 1}
    assert found.stands_for == 3
