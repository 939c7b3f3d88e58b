"""The plan of the day: frequencies, order and share by score, and limits of a day."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from nephila_harvest.sites.planner import DirectoryPlan, Planner

NOW = 1_800_000_000.0 - 1_800_000_000.0 % 86_400
HOUR, DAY = 3_600.0, 86_400.0


def drained(planner: Planner, now: float) -> list[str]:
    """The runs that begin at an instant, in order."""
    names = []
    while (start := planner.take(now)) is not None:
        names.append(start.name)
    planner.check()
    return names


def run(planner: Planner, now: float, new_pages: int = 0) -> list[str]:
    """All runs that begin at an instant, each over at once."""
    names = []
    while (start := planner.take(now)) is not None:
        planner.ended(start.name, now, 1 + new_pages, new_pages)
        names.append(start.name)
    planner.check()
    return names


def test_cron_runs_once_per_instant():
    """Ten instants while the program was stopped are one run."""
    planner = Planner()
    planner.put(DirectoryPlan("a.d", 1.0, "0 6 * * *"), NOW)
    assert run(planner, NOW) == []
    assert planner.next_event(NOW) == NOW + 6 * HOUR
    assert run(planner, NOW + 10 * DAY) == ["a.d"]
    assert planner.next_at("a.d") == NOW + 10 * DAY + 6 * HOUR


def test_intervals_are_counted_from_the_start_instant():
    """Without jitter, also after a late run."""
    planner = Planner()
    planner.put(DirectoryPlan("a.d", 1.0, "1d", start_at=NOW + 6 * HOUR), NOW)
    assert run(planner, NOW + 5 * HOUR) == []
    assert run(planner, NOW + 8 * HOUR) == ["a.d"]
    assert planner.next_at("a.d") == NOW + DAY + 6 * HOUR


def test_no_run_of_a_paused_directory_begins():
    """Taken back, it is due at once if it was due meanwhile; the run that is open goes on and ends."""
    planner = Planner()
    planner.put(DirectoryPlan("a.d", 1.0, "6h", paused=True), NOW)
    planner.put(DirectoryPlan("a.e", 1.0, "6h"), NOW)
    assert drained(planner, NOW) == ["a.e"]
    planner.put(DirectoryPlan("a.e", 1.0, "6h", paused=True), NOW)
    planner.ended("a.e", NOW, 1, 0)
    planner.check()
    assert drained(planner, NOW + DAY) == []
    planner.put(DirectoryPlan("a.d", 1.0, "6h"), NOW + DAY)
    planner.put(DirectoryPlan("a.e", 1.0, "6h"), NOW + DAY)
    assert sorted(drained(planner, NOW + DAY)) == ["a.d", "a.e"]


def test_an_interval_without_start_begins_at_once():
    """The next run is one interval later, within the jitter of the recrawl policy."""
    planner = Planner()
    planner.put(DirectoryPlan("a.d", 1.0, "6h"), NOW)
    assert run(planner, NOW) == ["a.d"]
    assert planner.next_at("a.d") == pytest.approx(NOW + 6 * HOUR, abs=0.06 * 6 * HOUR)


def test_adaptive_follows_the_rate_of_new_pages():
    """A directory with new pages in every run runs as often as allowed, a quiet one more and more seldom."""
    planner = Planner()
    for name in ("a.busy", "a.quiet"):
        planner.put(DirectoryPlan(name, 1.0, "adaptive 1h 30d"), NOW)
    counts: Counter[str] = Counter()
    now = NOW
    while now < NOW + 60 * DAY:
        while (start := planner.take(now)) is not None:
            new_pages = 3 if start.name == "a.busy" else 0
            planner.ended(start.name, now, 1 + new_pages, new_pages)
            counts[start.name] += 1
        now = max(planner.next_event(now), now + 1)
    assert counts["a.busy"] > 900
    assert counts["a.quiet"] < 100


def test_the_higher_score_goes_first():
    """All are due at once; equal scores in the order of their due times."""
    planner = Planner(parallel=100)
    for number, score in enumerate((1.0, 5.0, 3.0, 5.0)):
        planner.put(DirectoryPlan(f"s.{number}", score, "1h", start_at=NOW + number), NOW - 1)
    assert drained(planner, NOW + 10) == ["s.1", "s.3", "s.2", "s.0"]


@pytest.mark.parametrize(("frequency", "least", "most"), [("1h", 2.8, 3.2), ("6h", 1.8, 3.0)])
def test_a_short_day_is_shared_by_score(frequency, least, most):
    """A part of what is due fits into a day: runs are in proportion to the scores, as far as the frequency of the high
    score allows, and none starves."""
    planner = Planner(parallel=1, pages_per_day=100)
    for number in range(40):
        planner.put(DirectoryPlan(f"s.{number}", 3.0 if number < 20 else 1.0, frequency), NOW)
    counts: Counter[str] = Counter()
    for step in range(20 * 24 * 6):
        now = NOW + step * HOUR / 6
        while (start := planner.take(now)) is not None:
            planner.ended(start.name, now, 1, 0)
            counts[start.name] += 1
    high = sum(counts[f"s.{number}"] for number in range(20))
    low = sum(counts[f"s.{number}"] for number in range(20, 40))
    assert 95 * 20 <= high + low <= 100 * 20
    assert least <= high / low <= most
    assert min(counts.values()) > 20


def test_a_day_ends_at_midnight():
    """When the pages of the day are used up, the next run is after midnight UTC."""
    planner = Planner(parallel=10, pages_per_day=25)
    for number in range(5):
        planner.put(DirectoryPlan(f"s.{number}", 1.0, "3d"), NOW)
    begun = [start.name for start in iter(lambda: planner.take(NOW + HOUR), None)]
    assert len(begun) == 3  # 10 pages are expected of each
    assert planner.next_event(NOW + HOUR) == NOW + DAY
    for name in begun:
        planner.ended(name, NOW + HOUR, 1, 0)
    assert len(drained(planner, NOW + HOUR)) == 2  # they took less than expected


def test_no_more_runs_at_once_than_allowed():
    """The next one starts when one ends."""
    planner = Planner(parallel=2)
    for number in range(3):
        planner.put(DirectoryPlan(f"s.{number}", 1.0, "1d"), NOW)
    assert len(drained(planner, NOW)) == 2
    planner.ended(planner.running[0], NOW, 1, 0)
    assert len(drained(planner, NOW + 1)) == 1


def test_changes_and_removals_at_any_time():
    """Random plans, removals, starts and ends keep the invariants; an open run goes on over a change."""
    rng, planner, now = random.Random(5), Planner(parallel=4), NOW
    names: set[str] = set()
    for _ in range(3_000):
        now += rng.random() * HOUR
        name = f"s.{rng.randrange(30)}"
        match rng.randrange(5):
            case 0 | 1:
                frequency = rng.choice(["6h", "0 6 * * *", "adaptive 1h 7d", "1d"])
                planner.put(DirectoryPlan(name, rng.choice([1.0, 2.5, 9.0]), frequency), now)
                names.add(name)
            case 2 if name in names and rng.random() < 0.3:
                planner.remove(name)
                names.discard(name)
            case 3:
                planner.take(now)
            case 4 if planner.running:
                ended = rng.choice(planner.running)
                planner.ended(ended, now - 60, 3, rng.randrange(3), failed=rng.random() < 0.2)
        planner.check()
        assert len(planner) == len(names)
        assert len(planner.running) <= 4


def test_progress_survives_a_restart():
    """A planner that is filled from stored progress continues: due times, shares, open runs."""
    first = Planner()
    plans = [DirectoryPlan(f"s.{number}", 1.0 + number, "1d") for number in range(5)]
    stored = {}
    for plan in plans:
        first.put(plan, NOW)
    for _ in plans:
        start = first.take(NOW)
        assert start is not None
        stored[start.name] = first.ended(start.name, NOW, 4, 1)
    second = Planner()
    for plan in plans:
        second.put(plan, NOW + HOUR, stored[plan.name])
    second.resume("s.3")
    second.check()
    assert second.running == ["s.3"]
    assert [second.next_at(plan.name) for plan in plans] == [first.next_at(plan.name) for plan in plans]
    assert drained(second, NOW + HOUR) == []


def test_a_run_begins_in_a_window_of_its_directory():
    """Due at noon, begun at 22:00; in the window it runs as without one."""
    planner = Planner()
    planner.put(DirectoryPlan("a.d", 1.0, "0 12 * * *", windows=("22:00-06:00",)), NOW)
    assert planner.next_event(NOW) == NOW + 22 * HOUR
    assert run(planner, NOW + 21 * HOUR) == []
    assert run(planner, NOW + 22 * HOUR) == ["a.d"]
    planner = Planner()
    planner.put(DirectoryPlan("a.d", 1.0, "0 23 * * *", windows=("22:00-06:00",)), NOW)
    assert planner.next_event(NOW) == NOW + 23 * HOUR


def test_a_run_that_found_no_place_in_its_window_waits_for_the_next():
    """Other runs took the only place until the window was closed."""
    planner = Planner(parallel=1)
    planner.put(DirectoryPlan("a.long", 9.0, "1d"), NOW)
    planner.put(DirectoryPlan("a.night", 1.0, "1d", windows=("00:00-06:00",)), NOW)
    assert drained(planner, NOW) == ["a.long"]
    planner.ended("a.long", NOW, 1, 0)
    assert drained(planner, NOW + 7 * HOUR) == []
    assert planner.next_event(NOW + 7 * HOUR) == planner.next_at("a.long")
    assert drained(planner, NOW + 30 * HOUR) == ["a.long"]
    planner.ended("a.long", NOW + 30 * HOUR, 1, 0)
    assert drained(planner, NOW + 2 * DAY) == ["a.night"]


def test_a_run_that_waits_for_its_window_gives_its_place_to_others():
    planner = Planner(parallel=1)
    for name, score in (("a.x", 2.0), ("a.y", 1.0)):
        planner.put(DirectoryPlan(name, score, "1d"), NOW)
    assert drained(planner, NOW) == ["a.x"]
    planner.hold("a.x", held=True)
    assert drained(planner, NOW) == ["a.y"]
    planner.hold("a.x", held=False)
    planner.hold("a.unknown", held=True)
    planner.ended("a.y", NOW, 1, 0)
    planner.check()
    planner.hold("a.x", held=True)
    planner.ended("a.x", NOW, 1, 0)
    planner.check()
    assert planner.running == []
