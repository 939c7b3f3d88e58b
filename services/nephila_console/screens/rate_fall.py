"""A rate that fell is noticed while URLs are queued: the last minute against the ten minutes before. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from nephila_control.screen_types import Sample

RECENT_S: Final = 60.0
"""Length of the time whose rate is compared,"""
BEFORE_S: Final = 600.0
"""with that of this time before it."""
LEAST_S: Final = 300.0
"""A shorter time before says little, as at a start."""
FELL_TO: Final = 0.5
"""A rate below this part of the one before has fallen."""
LEAST_RATE: Final = 0.5
"""URLs per second before. Chance alone halves a lower rate too often."""


class Fall(NamedTuple):
    since: float
    """Begin of the last minute, in seconds since 1970 UTC."""
    before: float
    now: float
    """URLs that ended per second."""
    failed_before: float
    failed_now: float
    """Share of the fetches that failed."""


def fall(samples: Sequence[Sample]) -> Fall | None:
    """`samples` are recent ones, the oldest first; the last one is the present."""
    end = samples[-1] if samples else None
    middle = next((sample for sample in reversed(samples) if end is not None and sample.at <= end.at - RECENT_S), None)
    if end is None or middle is None or not end.queued:
        return None
    start = next(sample for sample in samples if sample.at >= middle.at - BEFORE_S)
    # A job that is deleted takes its counts away.
    if middle.at - start.at < LEAST_S or not _ended(start) <= _ended(middle) <= _ended(end):
        return None
    before, now = _rate(start, middle), _rate(middle, end)
    if before < LEAST_RATE or now >= FELL_TO * before:
        return None
    return Fall(middle.at, before, now, _failed(start, middle), _failed(middle, end))


def _rate(start: Sample, end: Sample) -> float:
    return (_ended(end) - _ended(start)) / (end.at - start.at)


def _ended(sample: Sample) -> int:
    return sample.stored + sample.denied + sample.failed + sample.dropped


def _failed(start: Sample, end: Sample) -> float:
    ended = _ended(end) - _ended(start)
    return (end.failed - start.failed) / ended if ended > 0 else 0.0
