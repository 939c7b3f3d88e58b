"""A turn serves the only job that can take URLs without choosing anew; limits and order are those of single choices."""

from __future__ import annotations

import pytest
from nephila.kernel.documents.job_schema import Politeness, Scope

from tests.scheduler.engine.outcome_rig import OutcomeRig

SEEDS = [f"http://h{n}.test/" for n in range(8)]


@pytest.mark.parametrize(("limits", "pages"), [({"concurrency": 3}, 3), ({"concurrency": 99, "window": 5}, 5)])
def test_a_turn_ends_at_the_limits_of_the_frontier(limits: dict[str, int], pages: int) -> None:
    rig = OutcomeRig(**limits)
    rig.job(*SEEDS)
    assert len(rig.dispatch()) == pages
    assert rig.dispatch() == []


def test_a_turn_takes_no_more_than_the_page_budget() -> None:
    rig = OutcomeRig(concurrency=99)
    rig.job(*SEEDS, scope=Scope(max_depth=-1, max_pages=4))
    assert len(rig.dispatch()) == 4
    assert rig.dispatch() == []


def test_places_for_robots_count_in_the_page_budget() -> None:
    rig = OutcomeRig(concurrency=99)
    rig.job(*SEEDS, scope=Scope(max_depth=-1, max_pages=4), politeness=Politeness(delay="1s"))
    assert [request.url for request in rig.dispatch()] == [f"{seed}robots.txt" for seed in SEEDS[:4]]
    assert rig.dispatch() == []


def test_a_host_that_is_due_again_in_a_turn_keeps_its_place_by_depth() -> None:
    rig = OutcomeRig(concurrency=99)
    rig.job(
        *(f"http://h0.test/{n}" for n in range(3)),
        *SEEDS[1:3],
        politeness=Politeness(delay="0s", concurrency_per_host=2, respect_robots=False),
    )
    hosts = [request.host for request in rig.dispatch()]
    assert hosts == ["h0.test", "h1.test", "h2.test", "h0.test"]


def test_two_jobs_take_turns() -> None:
    rig = OutcomeRig(concurrency=6)
    rig.job(*SEEDS, uid="a")
    rig.job(*(f"http://other{n}.test/" for n in range(8)), uid="b")
    jobs = [request.job for request in rig.dispatch()]
    # One request in four waits at the downloader.
    assert sorted(jobs) == ["a"] * (len(jobs) // 2) + ["b"] * (len(jobs) - len(jobs) // 2)
    assert len(jobs) == 7
