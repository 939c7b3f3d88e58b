"""Groups never use more pages than the budget, and the last page is used, whatever fails and whoever is killed."""

from __future__ import annotations

import random

import pytest
from nephila.scheduler.group.page_grants import AHEAD, Granted, PagePool


class Group:
    """A group that fetches pages; `stored` and `flying` are in its log."""

    def __init__(self) -> None:
        self.pool = PagePool()
        self.queued = self.stored = self.flying = 0

    @property
    def claimed(self) -> int:
        return self.stored + self.flying

    @property
    def requested(self) -> int:
        return max(min(self.queued, AHEAD) - self.pool.left(self.claimed), 0)

    def fetch(self) -> None:
        if self.queued and self.pool.left(self.claimed) > 0:
            self.queued -= 1
            self.flying += 1

    def end(self, stored: bool) -> None:
        if self.flying:
            self.flying -= 1
            self.stored += stored


@pytest.mark.parametrize("seed", range(30))
def test_the_budget_is_exact_and_is_used_up(seed):
    rng = random.Random(seed)
    most = rng.choice((1, 7, 100, 500))
    budget, groups = Granted(max_pages=most), [Group() for _ in range(4)]
    for group in groups:
        group.queued = rng.choice((0, 5, 1000))
    groups[0].queued = 1000

    def report(number: int) -> None:
        group = groups[number]
        budget.request(number, group.requested)
        for receiver, pages in budget.grant().items():
            groups[receiver].pool.pages += pages
        if budget.short:
            for other, holder in enumerate(groups):
                if pages := holder.pool.take_back(holder.claimed, holder.queued):
                    budget.return_pages(other, pages)

    for _ in range(20_000):
        number = rng.randrange(4)
        group = groups[number]
        event = rng.randrange(4)
        if event == 0:
            group.fetch()
        elif event == 1:
            group.end(rng.random() < 0.8)
        elif event == 2:
            report(number)
        elif rng.random() < 0.05:
            # The group starts again on its log: fetches in flight are queued again and keep their pages.
            group.pool = PagePool(budget.pages.get(number, 0))
        assert sum(group.claimed for group in groups) <= most
        assert budget.free >= 0
    groups[0].queued += 1000
    for _ in range(1000):
        for number, group in enumerate(groups):
            report(number)
            group.fetch()
            group.end(True)
    assert sum(group.stored for group in groups) == most


def test_a_lowered_budget_grants_nothing_more():
    budget = Granted(max_pages=10)
    budget.request(0, 10)
    granted = 0
    while pages := budget.grant().get(0, 0):
        granted += pages
    assert granted == 10
    budget.max_pages = 5
    budget.request(1, 3)
    assert budget.grant() == {}
    assert budget.free == -5
