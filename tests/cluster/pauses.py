"""Pauses of a site during the steps of a run, from its log. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence


def longest_pause(starts: Iterable[float], since: float, until: float) -> float:
    """The longest time between two requests that follow each other, of those that overlap an interval; 0 without any.
    All times in seconds of one clock; O(n log n)."""
    pairs = itertools.pairwise(sorted(starts))
    return max((after - before for before, after in pairs if before <= until and after >= since), default=0.0)


def pauses(hosts: Sequence[Sequence[float]], since: float, until: float) -> tuple[float, float]:
    """(longest pause of one host, longest time without a request to any host) in an interval. `hosts`: the starts of
    the requests to each host."""
    of_one = max((longest_pause(one, since, until) for one in hosts), default=0.0)
    return of_one, longest_pause(itertools.chain.from_iterable(hosts), since, until)
