"""Windows: when they open and close, over midnight and changes of the clock, and what a document may say."""

from __future__ import annotations

import math
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nephila.kernel.documents.fetch_windows import Windows
from nephila.kernel.documents.job_document import document_of, from_json, spec_of
from nephila.kernel.runtime.errors import UsageError

PARIS = "Europe/Paris"


def utc(text: str) -> float:
    return datetime.fromisoformat(text + "+00:00").timestamp()


def changes(windows: Windows, first: str, count: int) -> list[str]:
    """The instants at which the windows open (+) and close (-)."""
    at, found = utc(first), []
    for _ in range(count):
        at = windows.state(at).until
        sign = "+" if windows.state(at).is_open else "-"
        found.append(sign + datetime.fromtimestamp(at, ZoneInfo("UTC")).strftime("%d %H:%M"))
    return found


def test_several_windows_one_of_them_over_midnight():
    windows = Windows(["22:00-06:00", "12:00-13:00"])
    assert changes(windows, "2026-06-01T00:00", 5) == ["-01 06:00", "+01 12:00", "-01 13:00", "+01 22:00", "-02 06:00"]
    assert windows.opens_at(utc("2026-06-01T06:00")) == utc("2026-06-01T12:00")
    assert windows.opens_at(utc("2026-06-01T12:30")) == utc("2026-06-01T12:30")


def test_windows_that_touch_are_one_and_a_whole_day_never_closes():
    assert changes(Windows(["08:00-10:00", "10:00-12:00"]), "2026-06-01T09:00", 2) == ["-01 12:00", "+02 08:00"]
    assert Windows(["06:00-24:00", "00:00-06:00"]).state(0.0) == (True, math.inf)


def test_an_hour_of_the_zone_moves_in_utc_with_its_clock():
    """On 29 March 2026 the clock in Paris goes from 02:00 to 03:00, on 25 October from 03:00 to 02:00."""
    windows = Windows(["22:00-06:00"], PARIS)
    assert changes(windows, "2026-03-28T12:00", 4) == ["+28 21:00", "-29 04:00", "+29 20:00", "-30 04:00"]
    assert changes(windows, "2026-10-24T12:00", 4) == ["+24 20:00", "-25 05:00", "+25 21:00", "-26 05:00"]


def test_hours_that_a_change_of_the_clock_skips_or_repeats():
    """A window in the skipped hour does not come; one that begins there begins at the change; a repeated one is open
    twice."""
    assert changes(Windows(["02:10-02:50"], PARIS), "2026-03-28T12:00", 2) == ["+30 00:10", "-30 00:50"]
    assert changes(Windows(["02:30-05:00"], PARIS), "2026-03-28T12:00", 2) == ["+29 01:00", "-29 03:00"]
    assert changes(Windows(["01:00-02:30"], PARIS), "2026-03-28T12:00", 2) == ["+29 00:00", "-29 01:00"]
    twice = ["+25 00:10", "-25 00:50", "+25 01:10", "-25 01:50"]
    assert changes(Windows(["02:10-02:50"], PARIS), "2026-10-24T12:00", 4) == twice


def test_a_zone_that_skips_a_day():
    """Samoa had no 30 December 2011."""
    windows = Windows(["12:00-13:00"], "Pacific/Apia")
    assert changes(windows, "2011-12-29T23:30", 2) == ["+30 22:00", "-30 23:00"]


minutes = st.integers(0, 1439)
zones = st.sampled_from(["", PARIS, "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca"])


@given(
    st.lists(st.tuples(minutes, minutes).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=3),
    zones,
    st.integers(1_700_000_000, 1_800_000_000),
)
def test_the_state_is_that_of_the_clock_on_the_wall_minute_by_minute(pairs, zone, begin):
    """A state that was found earlier, and one that is found now, are the same."""
    hours = [f"{a // 60:02}:{a % 60:02}-{b // 60:02}:{b % 60:02}" for a, b in pairs]
    kept = Windows(hours, zone)
    for at in range(begin - begin % 60, begin + 200_000, 60 * 97):
        local = datetime.fromtimestamp(at, ZoneInfo(zone or "UTC"))
        now = local.hour * 60 + local.minute
        expected = any(a <= now < b if a < b else now >= a or now < b for a, b in pairs)
        state = kept.state(at)
        assert state.is_open is expected
        assert state.until == Windows(hours, zone).state(at).until > at
        if state.until < math.inf:
            assert kept.state(state.until - 1).is_open is expected
            assert kept.state(state.until).is_open is not expected


def document(**spec):
    spec = {"seeds": ["http://a.test/"], **spec}
    return {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize("more", [{}, {"timeZone": PARIS}, {"timeZone": PARIS, "schedule": "0 6 * * *"}])
def test_a_job_keeps_its_windows_and_their_zone(more):
    job = from_json(document(windows=["22:00-06:00", "12:00 - 13:00"], **more)).job
    assert spec_of(job).windows == ["22:00-06:00", "12:00-13:00"]
    assert spec_of(job).time_zone == more.get("timeZone", "UTC")
    assert from_json(document_of(job)).job == job


@pytest.mark.parametrize(
    ("hours", "line"),
    [
        ("22:00", "windows[0]: '22:00' is no window like 22:00-06:00"),
        ("22:00-25:00", "is no window like"),
        ("9:00-10:00", "is no window like"),
        ("24:00-06:00", "is no window like"),
        ("06:00-06:00", "'06:00-06:00' ends when it begins; for all hours leave windows out"),
        ("٢٢:00-06:00", "is no window like"),
    ],
)
def test_wrong_hours_are_one_line(hours, line):
    with pytest.raises(UsageError) as error:
        from_json(document(windows=[hours]))
    assert line in str(error.value)
