"""The bench of the frontier measures what it says: pages have the links it counts, a restart finds what was left."""

import random
from pathlib import Path

import pytest
from nephila.native import page_pass

from benchmarks import bench_frontier
from benchmarks.frontier_load import LINKS, SHAPES, Web


def test_an_all_new_page_has_a_hundred_links_that_no_other_has():
    """Of every shape; a tenth of those of the ordinary web lead to hosts that nobody has named before."""
    for make in SHAPES.values():
        web, seen = Web(1000, random.Random(1)), set()
        for _ in range(20):
            url, body = make(web, LINKS)
            keys = page_pass(body, url, "utf-8").fingerprints
            found = {keys[at : at + 16] for at in range(0, len(keys), 16)}
            assert len(found) == LINKS
            assert not found & seen
            seen |= found


@pytest.mark.full
def test_every_shape_is_filled_restored_and_fetched(tmp_path: Path):
    """At a small size, with what a run reports."""
    for shape in SHAPES:
        directory = tmp_path / shape
        directory.mkdir()
        found = bench_frontier.one(shape, 5000, str(directory))
        later = bench_frontier.again(10, str(directory))
        assert found["urls"] == 5000
        assert found["queued"] == later["restored"] > 5000
        assert later["fetches"] >= 10
        assert found["hosts"] >= {"zipf": 500, "one-host": 1, "one-each": 5000}[shape]
        assert {*bench_frontier.COLUMNS.values(), *bench_frontier.RESTART.values()} <= {*found, *later}
