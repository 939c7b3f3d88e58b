"""Precision and its intervals against reference computations."""

from __future__ import annotations

import random

import pytest
from nephila_harvest.audit.precision import Z95, StratumCount, of_all, of_stratum, wilson


def solve(inside, low: float, high: float) -> float:
    """Where `inside` changes, by bisection."""
    first = inside(low)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) == first else (low, middle)
    return low


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (1, 3), (270, 300), (299, 300), (150, 300), (1, 1)])
def test_the_bounds_solve_the_score_test(right, n):
    """Wilson's bounds are the shares p that a score test does not reject: |observed - p| = z sqrt(p (1 - p) / n)."""
    share = right / n
    found = wilson(share, n)

    def accepted(p: float) -> bool:
        return (share - p) ** 2 <= Z95**2 * p * (1 - p) / n + 1e-15

    assert found.low == pytest.approx(solve(accepted, 0.0, share) if right else 0.0, abs=1e-6)
    assert found.high == pytest.approx(solve(accepted, share, 1.0) if right < n else 1.0, abs=1e-6)


def test_known_values():
    """81 of 263, an example of Newcombe (1998): 0.2553 to 0.3662."""
    found = wilson(81 / 263, 263)
    assert (found.low, found.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_strata_are_weighted_by_their_size():
    """A large stratum decides; a stratum without a label does not count."""
    large = StratumCount("large", 900, 90, right=81, wrong=9)
    small = StratumCount("small", 100, 10, right=5, wrong=5)
    none = StratumCount("none", 5000, 3)
    found = of_all([large, small, none])
    assert found.estimate == pytest.approx(0.9 * 0.9 + 0.1 * 0.5)
    assert found.low < found.estimate < found.high
    assert of_stratum(none) is None
    assert of_all([none]) is None


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (1, 3), (270, 300)])
def test_one_stratum_has_the_interval_of_a_simple_sample(right, n):
    """A random sample of it is a simple random sample: the effective sample size is the number of labels."""
    one = StratumCount("one", 10 * n, n, right, n - right)
    assert of_all([one]) == pytest.approx(of_stratum(one), abs=1e-12)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """1,000 simulated audits of 300 pages in four strata: 93 to 97.5 percent of the intervals have the truth."""
    rng = random.Random(1)
    sizes, shares, places = [6000, 2500, 1000, 500], [0.95, 0.8, 0.6, 0.99], [180, 75, 30, 15]
    truth = sum(size * share for size, share in zip(sizes, shares, strict=True)) / sum(sizes)
    covered = 0
    for _ in range(1000):
        counts = []
        for number, (size, share, n) in enumerate(zip(sizes, shares, places, strict=True)):
            right = sum(rng.random() < share for _ in range(n))
            counts.append(StratumCount(str(number), size, n, right, n - right))
        found = of_all(counts)
        covered += found.low <= truth <= found.high
    assert 930 <= covered <= 975
