"""Schedules in a time zone, over the changes of its clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from nephila.kernel.documents.cron import Schedule
from nephila.kernel.documents.job_document import document_of, from_json, spec_of
from nephila.kernel.runtime.errors import UsageError


def instants(expression: str, zone: str, first: str, count: int) -> list[str]:
    """The next instants of a schedule, in UTC."""
    schedule, at, found = Schedule(expression, zone), datetime.fromisoformat(first).timestamp(), []
    for _ in range(count):
        at = schedule.after(at)
        found.append(datetime.fromtimestamp(at, UTC).isoformat(timespec="minutes"))
    return found


def test_an_hour_of_the_zone_moves_in_utc_with_its_clock():
    assert instants("0 6 * * *", "Europe/Paris", "2026-03-28T00:00Z", 2) == [
        "2026-03-28T05:00+00:00",
        "2026-03-29T04:00+00:00",
    ]
    assert instants("0 6 * * *", "", "2026-03-28T00:00Z", 2) == ["2026-03-28T06:00+00:00", "2026-03-29T06:00+00:00"]


def test_an_hour_that_is_repeated_runs_once_and_one_that_is_skipped_runs_at_the_change():
    assert instants("30 2 * * *", "Europe/Paris", "2026-10-24T12:00Z", 2) == [
        "2026-10-25T00:30+00:00",
        "2026-10-26T01:30+00:00",
    ]
    assert instants("30 2 * * *", "Europe/Paris", "2026-03-28T12:00Z", 2) == [
        "2026-03-29T01:00+00:00",
        "2026-03-30T00:30+00:00",
    ]


def document(**spec):
    spec = {"seeds": ["http://a.test/"], **spec}
    return {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": "a"}, "spec": spec}


def test_a_job_has_the_zone_of_its_schedule():
    job = from_json(document(schedule="0 6 * * *", timeZone="Asia/Kolkata")).job
    assert (spec_of(job).schedule, spec_of(job).time_zone) == ("0 6 * * *", "Asia/Kolkata")
    assert from_json(document_of(job)).job == job


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"schedule": "0 6 * * *", "timeZone": "Europe/Pari"}, "timeZone: 'Europe/Pari' is no time zone like"),
        ({"schedule": "0 6 * * *", "timeZone": "../../etc/passwd"}, "is no time zone like"),
        ({"timeZone": "Europe/Paris"}, "timeZone: it is the zone of schedule and windows, and neither is given"),
    ],
)
def test_a_wrong_zone_is_one_line(spec, line):
    with pytest.raises(UsageError) as error:
        from_json(document(**spec))
    assert line in str(error.value)
