"""The shape of a URL gives away what no real page has, and nothing that a real page may have."""

from __future__ import annotations

import pytest
from nephila.scheduler.traps.path_patterns import MAX_PATTERN_CHARS, common_prefix, patterns_of
from nephila.scheduler.traps.url_shape import Limits, shape, without_session

NOW = 1_795_000_000.0

TRAPS = [
    ("http://a.test/a/b/a/b/a/b/a/b/", "path repeats the segments a/b 4 times"),
    ("http://a.test/x/news/news/news/news/today", "path repeats the segment news 4 times"),
    ("http://a.test/shop/en/de/fr/en/de/fr/en/de/fr/x.html?y=1", "path repeats the segments en/de/fr 3 times"),
    ("http://a.test/" + "/".join(f"s{i}" for i in range(40)), "path of 40 segments"),
    ("http://a.test/p/q/q/p/r/p/q/q/r/r/p/q/p/", "path of 13 segments, of which only 3 differ"),
    ("http://a.test/calendar/2031/5", "calendar of the year 2031, more than 2 years ahead"),
    ("http://a.test/Kalender/2031-05-17/", "calendar of the year 2031, more than 2 years ahead"),
    ("http://a.test/calendar/1901/12/24", "calendar of the year 1901, more than 30 years back"),
    ("http://a.test/events?view=month&date=2044-01", "calendar of the year 2044, more than 2 years ahead"),
    ("http://a.test/x.php?month=3&day=1&year=2090", "calendar of the year 2090, more than 2 years ahead"),
    ("http://a.test/find?c=red&c=red&c=red", "query repeats c=red 3 times"),
    ("http://a.test/find?" + "&".join(f"f{i}=1" for i in range(40)), "query of 40 parameters"),
    ("http://a.test/find?" + "&".join(f"f={i}" for i in range(20)), "query has the parameter f 20 times"),
]

REAL = [
    "http://a.test/",
    "http://a.test/2011/11/11/11/",
    "http://a.test/1/1/1/1/1/1/1/1/1/1/1/1.png",
    "http://a.test/tiles/0/1/1/0/1/0/0/1/1/1/0/1/0/0.json",
    "http://a.test/archive/1850/03/17/the-times",
    "http://a.test/events/1969/07/20/moon",
    "http://a.test/calendar/2027/05",
    "http://a.test/calendar/2001/05",
    "http://a.test/events/2026/11/12?lang=en",
    "http://a.test/parts/2100/12/valve",
    "http://a.test/report-2050/01/future-of-energy",
    "http://a.test/inventory?date=1974-02-01",
    "http://a.test/project/project/project",
    "http://a.test/a/a/a/a/b7f3.jpg",
    "http://a.test/com/example/app/src/main/java/com/example/app/Main.java",
    "http://a.test/search?fq=a&fq=b&fq=c&fq=d&q=x&q=",
    "http://a.test/form?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1&j=1",
    "http://a.test/update/monthly-venture-calendars-for-everyone.html",
    "https://a.test/redirect?to=http://b.test/a/b/a/b/a/b/",
]


@pytest.mark.parametrize(("url", "reason"), TRAPS)
def test_what_repeats_or_has_no_end_is_named(url, reason):
    """The reason says what repeats, how often, or which horizon was passed."""
    assert shape(url, NOW) == reason


@pytest.mark.parametrize("url", REAL)
def test_odd_but_possible_pages_pass(url):
    """Archives by date, tiles, packages, hashed directories, part numbers and long forms are not lost."""
    assert shape(url, NOW) == ""


def test_the_horizon_moves_with_the_crawl():
    """What was too far ahead in 2026 is a page of its time in 2030; the limits can be set."""
    assert shape("http://a.test/calendar/2031/5", NOW)
    assert shape("http://a.test/calendar/2031/5", NOW + 4 * 366 * 86_400) == ""
    assert shape("http://a.test/calendar/2031/5", NOW, Limits(years_ahead=10)) == ""


def test_hostile_shapes_are_cheap_to_refuse():
    """A URL of 100 KB is judged all the same: nothing here is worse than linear in a long path or query."""
    assert shape("http://a.test" + "/ab" * 33_000, NOW) == "path of 33000 segments"
    assert shape("http://a.test/?" + "a&" * 50_000, NOW).startswith("query of")
    assert shape("http://a.test/" + "event" * 20_000 + "?month=" + "&" * 2, NOW) == ""


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("http://a.test/x;jsessionid=0A1B2C3D4E5F60718293?y=1", "http://a.test/x?y=1"),
        ("http://a.test/x?PHPSESSID=k2j3h4g5f6d7s8a9q0w1", "http://a.test/x"),
        ("http://a.test/x?a=1&sid=9f86d081884c7d65&b=2", "http://a.test/x?a=1&b=2"),
        ("http://a.test/(S(lit3py55t21z5v55vlm25s55))/x.aspx", "http://a.test/x.aspx"),
        ("http://a.test/article.pl?sid=21/05/03/1234256", ""),
        ("http://a.test/x?sid=12345", ""),
        ("http://a.test/x?sid=the-story-of-a-very-long-night", ""),
        ("http://a.test/x?inside=9f86d081884c7d65", ""),
        ("http://a.test/sessions/2026", ""),
    ],
)
def test_session_ids_are_told_from_stories(url, bare):
    """A known name with a random token is a session id; a number, a path or words under the same name are not."""
    assert without_session(url) == bare


def test_places_of_a_url():
    """Narrowest first: parameters, the query, the path but for its numbers, two directories; never the root."""
    at = patterns_of("http://a.test/shop/item?lang=en&sid=77")
    assert at.patterns == ["/shop/item?lang", "/shop/item?sid", "/shop/item?", "/shop/"]
    assert at.values == ["en", "77", "lang=en&sid=77", ""]
    assert patterns_of("http://a.test/calendar/2026/11").patterns == ["/calendar/*/*", "/calendar/*/", "/calendar/"]
    assert patterns_of("http://a.test/17.html").patterns == ["/*.html"]
    assert patterns_of("http://a.test/").patterns == patterns_of("http://a.test/about").patterns == []


def test_places_of_a_hostile_url_are_few_and_short():
    """A thousand parameters of a thousand letters make a dozen short places."""
    query = "&".join(f"{i}{'n' * 500}={'v' * 500}" for i in range(1000))
    at = patterns_of("http://a.test/" + "p/" * 500 + "?" + query)
    assert len(at.patterns) <= 12
    assert max(map(len, at.patterns)) <= MAX_PATTERN_CHARS + 42


def test_the_stem_is_what_links_into_a_place_begin_with():
    """Up to the query, the first directory, or the first digit of a name in the root."""
    assert common_prefix("http://a.test/shop/item?sid=1") == "http://a.test/shop/item?"
    assert common_prefix("http://a.test/calendar/2026/11") == "http://a.test/calendar/"
    assert common_prefix("http://a.test/day-17.html") == "http://a.test/day-"
    assert common_prefix("http://a.test/about") == "http://a.test/"
