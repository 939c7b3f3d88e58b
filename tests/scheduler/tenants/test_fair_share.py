"""Jobs share fetches by weight; none starves, none saves up, and no window is unfair by more than a quantum."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nephila.scheduler.tenants.fair_share import FairShare


def shared(weights: dict[str, float]) -> FairShare[str]:
    """Jobs with these weights."""
    share = FairShare[str]()
    for job, weight in weights.items():
        share.add(job, weight)
    return share


@given(st.lists(st.floats(0.05, 20.0), min_size=1, max_size=6), st.integers(0, 300), st.integers(1, 300))
def test_over_any_window_each_job_has_its_share_within_a_quantum(weights, start, length):
    """Whatever the weights and wherever the window begins."""
    jobs = {str(n): weight for n, weight in enumerate(weights)}
    share = shared(jobs)
    served = [share.next(jobs) for _ in range(start + length)][start:]
    share.check()
    total, least = sum(weights), min(weights)
    for job, count in Counter(dict.fromkeys(jobs, 0) | Counter(served)).items():
        assert abs(count - length * jobs[job] / total) <= jobs[job] / least + len(jobs)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=6))
def test_whole_weights_are_exact_over_whole_rounds(weights):
    """Weights 3 and 1 with a smallest of 1: every four fetches are three and one."""
    weights[0] = 1
    jobs = {str(n): float(weight) for n, weight in enumerate(weights)}
    share, length = shared(jobs), sum(weights)
    for _ in range(5):
        assert Counter(share.next(jobs) for _ in range(length)) == Counter(jobs)


def test_a_job_without_work_saves_nothing_up():
    """Idle for a thousand fetches, it has its share from then on, and no more."""
    share = shared({"a": 1.0, "b": 1.0})
    assert {share.next({"a"}) for _ in range(1000)} == {"a"}
    served = Counter(share.next({"a", "b"}) for _ in range(100))
    assert abs(served["a"] - served["b"]) <= 1


def test_what_is_left_of_a_turn_is_lost_with_the_work():
    """A job of weight four that ran out of work after one fetch has four in its next turn, not seven."""
    share = shared({"a": 4.0, "b": 1.0})
    while share.next("ab") != "a":
        pass
    assert {share.next("b") for _ in range(3)} == {"b"}
    served = "".join(filter(None, (share.next("ab") for _ in range(10))))
    assert "aaaa" in served
    assert "aaaaa" not in served


def test_weights_change_and_jobs_come_and_go():
    """A changed weight counts from the next round; who is removed has no more turns; a new job waits one round."""
    share = shared({"a": 1.0, "b": 1.0, "c": 1.0})
    share.add("b", 2.0)
    assert Counter(share.next("abc") for _ in range(400))["b"] == pytest.approx(200, abs=2)
    share.remove("a")
    share.remove("nobody")
    assert (len(share), "a" in share, "c" in share) == (2, False, True)
    assert Counter(share.next("abc") for _ in range(300)) == pytest.approx(Counter(b=200, c=100), abs=2)
    share.add("d")
    assert "d" in [share.next("bcd") for _ in range(4)]


def test_who_comes_after_a_removed_job_keeps_its_turn():
    """Removing the job whose turn it is takes no turn from the next."""
    share = shared({"a": 1.0, "b": 3.0, "c": 1.0})
    assert share.next("abc") == "b" or share.next("abc") == "b"
    share.remove("b")
    assert set(itertools.islice(iter(lambda: share.next("ac"), None), 2)) == {"a", "c"}


def test_nobody_to_serve():
    """No jobs, or none that shares: None, and nothing is charged."""
    share = FairShare[str]()
    assert share.next({"a"}) is None
    share.add("a", 0.0)
    assert share.next({"b"}) is None
    assert share.next({"a"}) == "a"
    share.remove("a")
    assert share.next({"a"}) is None
    share.check()


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused(weight):
    """One line, and the job is not in."""
    share = FairShare[str]()
    with pytest.raises(ValueError, match="weight of a job must be a positive number"):
        share.add("a", weight)
    assert len(share) == 0


def test_random_operations_starve_nobody():
    """Through thousands of changes, a job that has work is served within one round of all quanta."""
    rng, share, waiting = random.Random(5), FairShare[int](), Counter[int]()
    for step in range(20_000):
        action, job = rng.random(), rng.randrange(12)
        if action < 0.02:
            share.add(job, rng.choice([0.5, 1.0, 2.0, 4.0]))
        elif action < 0.03:
            share.remove(job)
            del waiting[job]
        else:
            busy = {n for n in range(12) if n in share and (n % 3 == 0 or rng.random() < 0.5)}
            served = share.next(busy)
            assert (served is None) == (not busy)
            for n in range(0, 12, 3):
                waiting[n] = waiting[n] + 1 if n in busy and n != served else 0
                assert waiting[n] <= 12 * 8
        if step % 500 == 0:
            share.check()
