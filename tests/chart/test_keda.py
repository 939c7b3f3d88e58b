"""KEDA's decision, against steps computed by hand from the rules of the HorizontalPodAutoscaler."""

from __future__ import annotations

from dataclasses import replace

from tools.keda import Policy, Scaling, decide, flaps, of_chart, query

PLAIN = Scaling(100, 1, 10, 0, Policy(0, 100, 15))


def replicas(values: list[float], scaling: Scaling, step_s: float = 15) -> list[int]:
    """Replicas after each value."""
    return [count for _, count in decide([(i * step_s, value) for i, value in enumerate(values)], scaling)]


def test_the_metric_is_shared_among_the_replicas() -> None:
    """ceil(metric / target) within the bounds; a difference of a tenth changes nothing."""
    assert replicas([50, 250, 310, 335, 100, 0], PLAIN) == [1, 3, 3, 4, 1, 1]


def test_an_increase_is_at_most_four_pods_or_a_doubling_per_15_s() -> None:
    assert replicas([1000, 1000, 1000], PLAIN) == [5, 10, 10]


def test_a_decrease_waits_for_the_window() -> None:
    """The highest recommendation of the last 60 s counts."""
    scaling = replace(PLAIN, stabilization_s=60)
    assert replicas([400, 100, 100, 100, 100, 100], scaling) == [4, 4, 4, 4, 1, 1]


def test_a_decrease_is_at_most_one_pod_per_minute() -> None:
    scaling = replace(PLAIN, down=Policy(1, 0, 60))
    assert replicas([400, 0, 0, 0, 0, 0, 0, 0, 0, 0], scaling) == [4, 3, 3, 3, 3, 2, 2, 2, 2, 1]


def test_a_pod_that_is_removed_and_added_again_has_flapped() -> None:
    values = [400.0, 100, 400, 100, 400]
    assert flaps(decide([(i * 15, value) for i, value in enumerate(values)], PLAIN)) == 2
    calm = replace(PLAIN, stabilization_s=300)
    assert flaps(decide([(i * 15, value) for i, value in enumerate(values)], calm)) == 0


def test_the_values_and_the_query_are_those_of_the_chart() -> None:
    assert of_chart().max_replicas >= of_chart().min_replicas >= 1
    assert query("crawl").count('{namespace="crawl"}') == 2
