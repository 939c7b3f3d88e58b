"""Readings of page threads between fetcher and parser: taken once, for the same page only, bounded."""

from __future__ import annotations

from typing import Any

from nephila.kernel.pages.read_pages import MOST_BYTES, ReadPages


class Reading:
    """What a page thread made of a body."""

    def __init__(self, body: bytes, url: str = "http://a.test/", charset: str = "utf-8") -> None:
        self.body = body
        self.url = url
        self.charset = charset


def pages(*readings: Any) -> ReadPages:
    """With these readings."""
    found = ReadPages(None)
    for one in readings:
        found.put(one)
    return found


def test_a_reading_is_taken_once() -> None:
    """The second parse of a page, after a fault, is the parser's."""
    reading = Reading(b"x" * 100)
    found = pages(reading)
    assert found.take(reading.body, "http://a.test/", "utf-8") is reading  # type: ignore[comparison-overlap]
    assert found.take(reading.body, "http://a.test/", "utf-8") is None


def test_a_reading_is_of_one_body_url_and_charset() -> None:
    """An equal body is another page; a page that a middleware has changed is read again."""
    reading = Reading(b"x" * 100)
    assert pages(reading).take(bytes(bytearray(reading.body)), "http://a.test/", "utf-8") is None
    assert pages(reading).take(reading.body, "http://b.test/", "utf-8") is None
    assert pages(reading).take(reading.body, "http://a.test/", "") is None


def test_readings_nobody_takes_are_dropped() -> None:
    """The oldest first, above the bound; the newest stays, however large it is."""
    readings = [Reading(bytes([number]) * (MOST_BYTES // 4)) for number in range(5)]
    found = pages(*readings)
    assert found.waiting == 4
    assert found.take(readings[0].body, "http://a.test/", "utf-8") is None
    assert found.take(readings[4].body, "http://a.test/", "utf-8") is not None
    found.put(Reading(b"y"))  # type: ignore[arg-type]
    assert found.waiting == 4
    found.put(Reading(b"z" * (MOST_BYTES + 1)))  # type: ignore[arg-type]
    assert found.waiting == 1
