"""Dates of sitemaps and feeds: every W3C form, e-mail's, and what is none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from nephila.parser.lists.dates import utc_of

NOW = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024", "2024-01-01T00:00:00"),
        ("2024-05", "2024-05-01T00:00:00"),
        ("2024-05-02", "2024-05-02T00:00:00"),
        ("2024-5-2", "2024-05-02T00:00:00"),
        ("2024-05-02T10:11Z", "2024-05-02T10:11:00"),
        ("2024-05-02T10:11+02:00", "2024-05-02T08:11:00"),
        ("2024-05-02T10:11:12Z", "2024-05-02T10:11:12"),
        ("2024-05-02T10:11:12-03:30", "2024-05-02T13:41:12"),
        ("2024-05-02T10:11:12.25+00:00", "2024-05-02T10:11:12.25"),
        ("2024-05-02T10:11:12+0200", "2024-05-02T08:11:12"),
        ("2024-05-02T24:00:00Z", "2024-05-03T00:00:00"),
        ("2024-05-02T24:00:00-03:30", "2024-05-03T03:30:00"),
        ("2024-5-2T10:11+02:00", "2024-05-02T08:11:00"),
        ("2024-05-02 10:11:12 UTC", "2024-05-02T10:11:12"),
        ("2024-05-02t10:11:12", "2024-05-02T10:11:12"),
        (" \n2024-02-29\n", "2024-02-29T00:00:00"),
        ("Thu, 02 May 2024 10:11:12 GMT", "2024-05-02T10:11:12"),
        ("Thu, 2 May 24 10:11:12 -0500", "2024-05-02T15:11:12"),
        ("02 May 2024 10:11:12 EST", "2024-05-02T15:11:12"),
        ("Thu, 02 May 2024", "2024-05-02T00:00:00"),
        ("2 May 2024", "2024-05-02T00:00:00"),
        ("2026-11-01T12:00:00Z", "2026-11-01T12:00:00"),
    ],
)
def test_dates(text: str, instant: str) -> None:
    """As UTC; without a zone it is UTC, without a time the first second."""
    assert utc_of(text, NOW) == datetime.fromisoformat(instant).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "", "yesterday", "2023-02-29", "2024-13-01", "0001-01-01T00:00:00", "1970-01-01", "1900-01-01", "9999-12-31",
        "2026-11-03", "99999", "20245", "-1", "2024-05-02T99:99:99Z", "2024-05-02T10:00:00+99:00", "٢٠٢٤-٠٥-٠٢", "\0",
        "2" * 1_000_000, "Thu, 99 May 2024 10:11:12 GMT", "Thu, 02 May 99999999999 10:11:12 GMT", ", , , ", "a b c d e",
    ],
)  # fmt: skip
def test_no_dates(text: str) -> None:
    """Unreadable, off the calendar, before the web or in the future: not said."""
    assert utc_of(text, NOW) == 0.0
