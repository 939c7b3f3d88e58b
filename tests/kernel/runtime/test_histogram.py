"""Histograms: counts by upper bound as Prometheus reads them, against a model."""

from __future__ import annotations

import random

import pytest
from nephila.kernel.runtime.histogram import FAST_S, SUM, Histogram
from nephila.kernel.runtime.metrics import Metric, MetricsCollector, exposition, registry_of


def test_a_value_counts_in_its_bound_and_all_above():
    """A value equal to a bound is at or below it."""
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value)
    assert histogram.value() == {"0.1": 2, "1.0": 3, "+Inf": 4, SUM: pytest.approx(7.65)}
    assert histogram.count == 4


def test_random_values_agree_with_a_plain_count():
    """Against counting each value for each bound."""
    rng, values, histogram = random.Random(1), [], Histogram(FAST_S)
    for _ in range(2000):
        values.append(rng.choice([rng.random(), rng.random() / 1000, rng.choice(FAST_S), 9.0]))
        histogram.observe(values[-1])
    assert histogram.value() == {
        **{str(bound): sum(value <= bound for value in values) for bound in FAST_S},
        "+Inf": len(values),
        SUM: pytest.approx(sum(values)),
    }


def test_prometheus_reads_it():
    """With and without a label; the type is histogram."""
    histogram = Histogram((0.5,))
    histogram.observe(0.25)
    table = [
        Metric("plain_seconds", "Help.", lambda one: one.value(), histogram=True),
        Metric("labelled_seconds", "Help.", lambda one: {"a": one.value()}, "group", histogram=True),
    ]
    text = exposition(registry_of([MetricsCollector("parser", histogram, table)]))[0].decode()
    assert "# TYPE nephila_parser_plain_seconds histogram" in text
    assert 'nephila_parser_plain_seconds_bucket{le="0.5"} 1.0' in text
    assert 'nephila_parser_plain_seconds_bucket{le="+Inf"} 1.0' in text
    assert "nephila_parser_plain_seconds_sum 0.25" in text
    assert 'nephila_parser_labelled_seconds_count{group="a"} 1.0' in text
