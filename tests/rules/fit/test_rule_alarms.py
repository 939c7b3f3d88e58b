"""Whether a rule has gone bad: alarms in time for every kind of change, and none for a site that is as it is."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import mean

import pytest
from nephila.kernel import messages as m
from nephila_rules.fit.drift_test import LEARN, DriftTest, wilson
from nephila_rules.fit.health import ITEMS, STALE_S, RuleHealth, decode, encode

from tests.rules.fit.rule_health_sites import LIST, NEWS, Field, Kind, Site, Watched, always, mixed, without

LEARNED = 150
"""Pages of the site as it was."""
WITHIN = 50
SEEDS = range(6)
SHORT_LIST = replace(LIST, items=6)


def findings(watched: Watched) -> set[tuple[str, str]]:
    """Field and kind of all that is wrong."""
    return {(one.field, one.kind) for one in watched.health.findings()}


CHANGES: dict[str, tuple[Kind, Site, set[tuple[str, str]]]] = {
    "a required field is gone": (
        NEWS,
        always(without(NEWS, "title")),
        {("title", "gone"), ("title", "fewer"), (ITEMS, "gone"), (ITEMS, "fewer")},
    ),
    "a field is gone": (NEWS, always(without(NEWS, "text")), {("text", "gone"), ("text", "fewer")}),
    "a field of six pages in seven is gone": (NEWS, always(without(NEWS, "author")), {("author", "gone")}),
    "a field is of another type": (
        NEWS,
        always(without(NEWS, "date", filled=0.0, refused=True)),
        {("date", "type")},
    ),
    "half of the pages have changed": (
        NEWS,
        mixed(NEWS, without(NEWS, "title"), lambda n: 0.5),
        {("title", "fewer"), (ITEMS, "fewer")},
    ),
    "a text is cut short": (NEWS, always(without(NEWS, "text", characters=20)), {("text", "length")}),
    "a field is the same on every page": (NEWS, always(without(NEWS, "title", values=1)), {("title", "repeated")}),
    "a date has no digits": (NEWS, always(without(NEWS, "date", digits=0.0)), {("date", "digits")}),
    "a field of a list is gone": (
        SHORT_LIST,
        always(without(SHORT_LIST, "price")),
        {("price", "gone"), ("price", "fewer")},
    ),
    "a list of two dozen has one": (LIST, always(replace(LIST, items=1)), {(ITEMS, "length")}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed_within_fifty_pages(change: str) -> None:
    """By three parsers that tell every five pages each; what is said to be wrong is what has changed, and no more."""
    before, after, wrong = CHANGES[change]
    found = []
    for seed in SEEDS:
        watched = Watched()
        assert not watched.until_alarm(always(before), LEARNED, seed, parsers=3)
        found.append(watched.until_alarm(after, 2 * WITHIN, 1000 + seed, parsers=3))
        assert findings(watched) <= wrong
    assert min(found) > 0
    assert max(found) <= WITHIN, found
    assert mean(found) <= 35


def test_a_site_that_is_as_it_is_raises_no_alarm() -> None:
    """Fields that are on all pages, on most, on half and on few; lengths as they come."""
    for kind, pages in ((NEWS, 1000), (SHORT_LIST, 300)):
        for seed in SEEDS:
            assert not Watched().until_alarm(always(kind), pages, seed)


SPORT = replace(
    NEWS,
    fields={
        **NEWS.fields,
        "author": Field(0.05, 18, 0.25, 0.0, 40),
        "image": Field(1.0, 80, 0.2, 0.6),
        "text": Field(0.995, 500, 0.7, 0.95),
    },
)


@pytest.mark.parametrize("period", [50, 200, 600])
def test_kinds_of_pages_that_come_in_waves_raise_no_alarm(period: int) -> None:
    """From 15 to 85 of a hundred and back: an author on most pages of one kind and on few of the other."""
    site = mixed(NEWS, SPORT, lambda n: 0.5 + 0.35 * math.sin(n * 2 * math.pi / period))
    for seed in SEEDS:
        assert not Watched().until_alarm(site, 1000, seed)


def test_a_slow_decline_is_noticed() -> None:
    """Two points in a hundred pages: what was usual in the beginning stays what is usual."""
    for seed in SEEDS:
        watched = Watched()
        assert not watched.until_alarm(always(NEWS), LEARNED, seed)
        at = watched.until_alarm(
            lambda n, source: without(NEWS, "date", filled=max(0.99 - 0.0002 * n, 0.3)), 2000, 1000 + seed
        )
        assert 0 < at <= 1500, at


def test_few_pages_say_nothing() -> None:
    """A rule of ten pages has no usual, whatever the next ones are like; nor has a field that was never there."""
    for seed in SEEDS:
        watched = Watched()
        assert not watched.until_alarm(always(NEWS), LEARN - 5, seed)
        assert not watched.until_alarm(always(without(NEWS, "title")), 200, seed)
    assert not Watched().until_alarm(always(without(NEWS, "title")), 300, 1)


def test_it_recovers_when_the_rate_is_back() -> None:
    """And a second change raises a second alarm."""
    watched = Watched()
    watched.until_alarm(always(NEWS), LEARNED, 1)
    for seed in (2, 3):
        assert watched.until_alarm(always(without(NEWS, "title")), WITHIN, seed)
        assert watched.health.since > 0
        watched.read(always(NEWS), WITHIN, 10 + seed)
        assert not watched.health.findings()
        assert watched.health.since == 0
        assert not watched.until_alarm(always(NEWS), LEARNED, seed)


def test_half_of_the_pages_is_no_recovery() -> None:
    """While every second page lacks what all had, it stays degraded."""
    watched = Watched()
    watched.until_alarm(always(NEWS), LEARNED, 1)
    assert watched.until_alarm(always(without(NEWS, "title")), WITHIN, 2)
    half = mixed(NEWS, without(NEWS, "title"), lambda n: 0.5)
    for seed in range(10, 70):
        watched.read(half, 5, seed)
        assert "title" in {field for field, _ in findings(watched)}


def test_another_version_begins_anew() -> None:
    """It is well until its own pages say otherwise, and learns what is usual of it."""
    watched = Watched()
    watched.until_alarm(always(NEWS), LEARNED, 1)
    assert watched.until_alarm(always(without(NEWS, "title")), WITHIN, 2)
    watched.read(always(without(NEWS, "image")), LEARNED, 3, version=2)
    assert not findings(watched)
    assert (watched.health.version, watched.health.since) == (2, 0)
    assert watched.health.fields["title"].filled.pages > LEARN


def test_a_version_that_gives_nothing_is_measured_by_the_one_before() -> None:
    """Fields that the version before had on all pages: its first pages are enough."""
    watched = Watched()
    watched.until_alarm(always(NEWS), LEARNED, 1)
    watched.read(always(without(NEWS, "title")), 20, 2, version=2)
    assert ("title", "gone") in findings(watched)


def test_a_version_that_was_replaced_counts_for_nothing() -> None:
    """Parsers that hear of the new one later do not bring the old one back; a person who takes it back does."""
    health = RuleHealth()
    health.add(m.RuleStats("r", 1, 5), 1000.0)
    assert health.add(m.RuleStats("r", 2, 5), 1001.0)
    assert not health.add(m.RuleStats("r", 1, 5), 1002.0)
    assert (health.version, health.pages) == (2, 5)
    assert health.add(m.RuleStats("r", 1, 5), 1001.0 + STALE_S)
    assert (health.version, health.pages) == (1, 5)


def test_what_is_known_can_be_stored() -> None:
    """Whoever reads it goes on as if nothing had happened, with or without an alarm."""
    watched = Watched()
    for site in (always(NEWS), always(without(NEWS, "title"))):
        watched.until_alarm(site, LEARNED, 1)
        again = decode(encode(watched.health))
        assert again == watched.health
        assert encode(again) == encode(watched.health)


def test_the_lower_end_of_a_share() -> None:
    """Wilson's interval at z = 2: of few pages it is wide, of many narrow."""
    assert wilson(0, 0) == 0
    assert wilson(20, 20) == pytest.approx(20 / 24)
    assert wilson(50, 100) == pytest.approx(0.4019, abs=1e-4)
    assert wilson(5000, 10000) == pytest.approx(0.49, abs=1e-4)


def test_counts_of_no_page_change_nothing() -> None:
    """A message may say nothing of a field."""
    signal = DriftTest()
    assert not signal.add(0, 0)
    assert signal == DriftTest()


def test_the_usual_share_follows_the_last_thousands_of_pages() -> None:
    """Older pages lose their weight: years of one share do not outweigh a season of another one."""
    test = DriftTest()
    for _ in range(1_000):
        test.add(100.0, 60.0)
    assert test.usual == pytest.approx(0.6)
    for _ in range(150):
        test.add(100.0, 90.0)
    assert 0.87 < test.usual <= 0.9
    assert test.pages <= 5_000
