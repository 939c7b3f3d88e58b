"""Samples of the watched URLs of several groups are one sample: each group counts by its number of URLs."""

from __future__ import annotations

from collections import Counter

from nephila.kernel.messages import UrlState
from nephila_control.local.group_backend import evenly
from nephila_control.local.group_questions import Sample


def sample(group: int, total: int, sampled: int) -> Sample:
    states = [UrlState(url_key=bytes([group]) + number.to_bytes(15, "big")) for number in range(sampled)]
    return Sample(total, states, [float(group)] * sampled)


def test_small_samples_are_taken_whole():
    states, rates = evenly([sample(1, 3, 3), sample(2, 5, 5)], 100)
    assert Counter(state.url_key[0] for state in states) == {1: 3, 2: 5}
    assert {state.url_key[0]: rates[state.url_key] for state in states} == {1: 1.0, 2: 2.0}


def test_groups_count_by_their_urls_when_a_sample_is_a_part():
    states, _ = evenly([sample(1, 10_000, 100), sample(2, 1_000, 100), sample(3, 1, 1)], 100)
    assert Counter(state.url_key[0] for state in states) == {1: 91, 2: 9, 3: 1}


def test_without_watched_urls_there_is_no_sample():
    assert evenly([], 100) == ([], {})
