"""The verdict over a log of the site."""

from typing import Any

from tests.cluster.verdict import judge


def line(host: str, path: str, start: float, sent: float | None = None) -> dict[str, Any]:
    """One request."""
    return {"host": host, "path": path, "start": start, "sent": start if sent is None else sent}


def test_a_gap_counts_from_the_first_byte_of_the_response_before() -> None:
    """The start of a slow request proves nothing."""
    found = judge([line("a", "/0", 0.0, 0.3), line("a", "/1", 0.6), line("b", "/0", 0.1)], 0.5)
    assert (found.early, round(found.shortest_gap_s, 3)) == (1, 0.3)


def test_robots_txt_is_no_page_and_has_no_gap() -> None:
    """It is read before the first page, at once."""
    found = judge([line("a", "/robots.txt", 0.0), line("a", "/0", 0.1), line("a", "/1", 0.7)], 0.5)
    assert (found.pages, found.again, found.early) == (2, 0, 0)


def test_a_page_that_is_requested_twice_counts_once_and_again() -> None:
    """By host and path."""
    found = judge([line("a", "/0", 0.0), line("b", "/0", 1.0), line("a", "/0", 9.0)], 0.5)
    assert (found.pages, found.again, found.longest_pause_s) == (2, 1, 8.0)


def test_an_empty_log_has_no_gap() -> None:
    """Nothing is early."""
    assert judge([], 0.5).early == 0
