"""A history replayed: shares and requests that can be computed by hand, and the order that follows from frequency."""

from __future__ import annotations

import random

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila_harvest.what_if.replay import Outcomes, PageHistory, replay, scenario

H, D = 3_600.0, 86_400.0
START = 1_700_000_000.0


def page(number: int, changes: tuple[float, ...], every: float = D, days: int = 60) -> PageHistory:
    """A page that was fetched every `every` seconds."""
    fetches = tuple(START + n * every for n in range(int(days * D / every) + 1))
    return PageHistory(number.to_bytes(16, "big"), fetches, changes)


def changing(count: int, mean_s: float) -> list[PageHistory]:
    """Pages that change at random."""
    source = random.Random(5)
    pages = []
    for number in range(count):
        at, changes = START, []
        while (at := at + source.expovariate(1 / mean_s)) < START + 60 * D:
            changes.append(at)
        pages.append(page(number, tuple(changes)))
    return pages


def run(pages: list[PageHistory], text: str, within_s: float = 12 * H) -> Outcomes:
    """One scenario over sixty days."""
    return replay(pages, scenario(text), START + 60 * D, within_s)


def test_the_recorded_history_is_replayed_as_it_was() -> None:
    """Daily fetches: of three changes one is found in time, one is replaced before a fetch."""
    changes = (START + 1 * H, START + 30 * H, START + 40 * H)
    found = run([page(1, changes)], "recorded")
    assert (found.requests, found.changes, found.versions_lost) == (60, 3, 1)
    assert found.within is not None
    assert found.within.estimate == pytest.approx(1 / 3)
    assert found.mean_delay_s == pytest.approx((23 + 18 + 8) * H / 3)


def test_shorter_intervals_find_more_in_time_and_cost_more() -> None:
    """Every day half of the changes, every six hours all, at four times the requests."""
    pages = changing(60, 5 * D)
    day, quarter = run(pages, "1d"), run(pages, "6h")
    assert day.within is not None
    assert quarter.within is not None
    assert 0.4 < day.within.estimate < 0.6
    assert quarter.within.estimate > 0.99
    assert quarter.requests / day.requests == pytest.approx(4, rel=0.03)
    assert quarter.mean_delay_s == pytest.approx(3 * H, rel=0.1)
    recorded = run(pages, "recorded")
    assert day.requests == pytest.approx(recorded.requests, rel=0.02)
    assert day.versions_lost >= quarter.versions_lost


def test_a_budget_is_never_exceeded() -> None:
    """Half of what the frequency needs: half of the requests, and later."""
    pages = changing(60, 5 * D)
    free, bound = run(pages, "6h"), run(pages, "6h@120")
    assert bound.per_day == pytest.approx(120, rel=0.02)
    assert bound.requests < 0.6 * free.requests
    assert bound.mean_delay_s > 1.5 * free.mean_delay_s


def test_adaptive_frequencies_spend_where_pages_change() -> None:
    """With no more requests than daily ones they find more of the changes of a mixed crowd."""
    pages = [*changing(10, 0.5 * D), *(page(1_000 + n, ()) for n in range(60))]
    day, adaptive = run(pages, "1d"), run(pages, "4h..14d")
    assert adaptive.requests < day.requests
    assert adaptive.within is not None
    assert day.within is not None
    assert adaptive.within.estimate > day.within.estimate


def test_changes_at_the_end_are_not_judged() -> None:
    """A change of the last hour could not be found within twelve."""
    found = run([page(1, (START + 60 * D - H,))], "6h")
    assert (found.changes, found.within) == (0, None)


@pytest.mark.parametrize("text", ["", "6", "5s", "6h..", "2d..1d", "6h@0", "6h@x", "recorded@5", "sometimes"])
def test_no_scenario(text: str) -> None:
    """One line that names what was written."""
    with pytest.raises(UsageError, match="is no scenario"):
        scenario(text)
