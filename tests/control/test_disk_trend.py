"""When a disk is full, by its free space over the last hour."""

from __future__ import annotations

import pytest
from nephila_control.disk_trend import DiskTrend, fullest_first
from nephila_control.system_types import Disk


def filled(*, minutes: int, lost_per_minute: int, free: int = 1_000_000) -> Disk:
    """A disk that has lost bytes for some minutes."""
    trend = DiskTrend()
    for minute in range(minutes + 1):
        trend.note(60.0 * minute, "s", free - lost_per_minute * minute)
    return trend.disk(60.0 * minutes, "s", free - lost_per_minute * minutes, 10_000_000)


@pytest.mark.parametrize(
    ("minutes", "lost_per_minute", "full_in_s"),
    [(10, 1000, 990 * 60.0), (90, 1000, 910 * 60.0), (9, 1000, None), (60, 0, None), (60, -1000, None)],
)
def test_the_last_hour_tells_when_a_disk_is_full(minutes, lost_per_minute, full_in_s):
    """Ten minutes at least, and no more than an hour."""
    assert filled(minutes=minutes, lost_per_minute=lost_per_minute).full_in_s == full_in_s


def test_the_last_hour_counts_alone():
    """An earlier day on which nothing was written does not hide the present speed."""
    trend = DiskTrend()
    for minute in range(24 * 60):
        trend.note(60.0 * minute, "s", 1_000_000)
    for minute in range(61):
        trend.note(86_400 + 60.0 * minute, "s", 1_000_000 - 1000 * minute)
    assert trend.disk(86_400 + 3600.0, "s", 940_000, 10_000_000).full_in_s == pytest.approx(940 * 60.0)


def test_samples_are_bounded_and_forgotten_with_their_member():
    trend = DiskTrend()
    for second in range(10_000):
        trend.note(float(second), "s", 5)
    assert len(trend._samples["s"]) <= 61
    trend.keep(["other"])
    assert trend.due(10_000.0, "s")


def test_the_fullest_disk_is_first():
    disks = [Disk(member=name, free_bytes=free, size_bytes=size) for name, free, size in (("a", 50, 100), ("b", 9, 90))]
    assert [disk.member for disk in fullest_first(disks)] == ["b", "a"]
