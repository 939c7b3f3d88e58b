"""Recall from a sample of pages and one of links, and expressions from their labels."""

from __future__ import annotations

import random

import pytest
from nephila_harvest.audit.expressions import proposals
from nephila_harvest.audit.precision import StratumCount, recall


def test_recall_of_known_counts() -> None:
    """900 of 1,000 pages are wanted, and 100 of 2,000 links."""
    stored = [StratumCount("a", 1_000, 100, 90, 10)]
    links = [StratumCount("b", 2_000, 200, 190, 10)]
    found = recall(stored, links)
    assert found is not None
    assert found.estimate == pytest.approx(900 / 1_000)
    assert found.low < 0.9 < found.high
    assert recall(stored, [StratumCount("b", 2_000)]) is None
    assert recall([], links) is None


def test_the_interval_holds_at_least_as_often_as_it_says() -> None:
    """In 300 samples of a crawl whose recall is known."""
    source, hits = random.Random(1), 0
    truth = 0.8 * 1_000 / (0.8 * 1_000 + 0.1 * 3_000)
    for _ in range(300):
        right = sum(source.random() < 0.8 for _ in range(80))
        rightly = sum(source.random() < 0.9 for _ in range(120))
        found = recall(
            [StratumCount("a", 1_000, 80, right, 80 - right)],
            [StratumCount("b", 3_000, 120, rightly, 120 - rightly)],
        )
        assert found is not None
        hits += found.low <= truth <= found.high
    assert hits >= 0.95 * 300


def test_expressions_match_their_kind_alone() -> None:
    """Directories, parameters and shapes with numbers; none that matches what is wanted."""
    good = [f"https://a.test/news/{n}/story" for n in range(20)]
    bad = [f"https://a.test/tag/word{n}" for n in range(5)]
    bad += [f"https://a.test/news/{n}/story?print={n}" for n in range(4)]
    found = proposals("exclude", bad, good)
    assert [(one.expression, one.hits, one.against) for one in found] == [
        ("/tag/", 5, 0),
        ("[?&]print=", 4, 0),
    ]
    assert found[0].share.low < found[0].share.estimate == 1.0


def test_no_expression_from_two_urls_or_against_many() -> None:
    """Nothing is proposed from chance."""
    assert proposals("exclude", ["https://a.test/x/1", "https://a.test/x/2"], []) == []
    same = [f"https://a.test/x/{n}" for n in range(30)]
    assert proposals("include", same[::2], same[1::2]) == []
