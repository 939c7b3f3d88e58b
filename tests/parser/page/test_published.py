"""Dates of publication are ISO 8601 or absent, authors are names, titles are not the site's name."""

from __future__ import annotations

import pytest
from nephila.parser.page.byline import name_of
from nephila.parser.page.published import as_date, visible_date
from nephila.parser.single.extract import extract


@pytest.mark.parametrize(
    ("said", "date"),
    [
        ("2016-04-14T19:27:58+00:00", "2016-04-14T19:27:58+00:00"),
        ("2016-04-14", "2016-04-14"),
        ("2025-11-25 08:33:24", "2025-11-25T08:33:24"),
        ("June 25, 2025", "2025-06-25"),
        ("on Friday December 19, 2025 @08:00PM", "2025-12-19T20:00:00"),
        ("2019/1/22", "2019-01-22"),
        ('"2025-12-17T13:22:47Z"', "2025-12-17T13:22:47Z"),
        ("Tue, 20 Dec 2016 10:00:00 GMT", "2016-12-20T10:00:00Z"),
        ("PT7M", ""),
        ("7 min read", ""),
        ("03/04/2026", ""),
        ("2016-13-45", ""),
        ("0001-01-01T00:00:00", ""),
        ("9999-12-31", ""),
        ("undefined", ""),
        ("9" * 99, ""),
        ("", ""),
    ],
)
def test_a_stated_date(said: str, date: str) -> None:
    """As it is written where it is ISO 8601, read where it is a date, else nothing."""
    assert as_date(said) == date


def page(head: str = "", body: str = "", url: str = "http://news.test/a/b") -> dict[str, str]:
    """What is extracted of a page."""
    return extract(f"<html><head>{head}</head><body>{body}</body></html>".encode(), url)


def test_what_is_no_date_does_not_hide_one() -> None:
    """A duration in <time>, a text in <meta>: the next one that is a date counts."""
    assert page(body="<time datetime=PT7M>7 min</time><time datetime=2025-01-02>x</time>")["published"] == "2025-01-02"
    assert (
        page('<meta name="date" content="soon"><meta name="pubdate" content="May 3, 2024">')["published"]
        == "2024-05-03"
    )
    assert page(body="<time datetime=PT7M>7 min</time>")["published"] == ""


@pytest.mark.parametrize(
    ("lines", "date"),
    [
        ("Storm over the coast|By Ann Lee|June 25, 2025|It was loud.", "2025-06-25"),
        ("Storm over the coast|Published on 25 June 2025, 10:00|It", "2025-06-25"),
        ("25. Juni 2025|Storm over the coast|It", "2025-06-25"),
        ("Storm over the coast|Updated June 27, 2025|Posted June 25, 2025", "2025-06-25"),
        ("Storm over the coast|The ship that sank there on June 25, 1925 in the great storm had sailed from here.", ""),
        ("Storm over the coast|from June 25, 2025 to June 27, 2025", ""),
        ("Another line|June 25, 2025", ""),
        ("Storm over the coast||||||||June 25, 2025", ""),
    ],
)
def test_a_date_beside_the_headline(lines: str, date: str) -> None:
    """A short line with little else; a sentence with a date in it is none."""
    assert visible_date(lines.replace("|", "\n"), ("Storm over the coast",)) == date
    body = "".join(f"<h1>{one}</h1>" if one.startswith("Storm") else f"<p>{one}</p>" for one in lines.split("|") if one)
    if "||" not in lines:
        assert page(body=body)["published"] == date


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Sign In", ""),
        ("undefined", ""),
        ("Name *", ""),
        ("Log in", ""),
        ("Webmaster", ""),
        ("The Pennsylvania State University © 2025", ""),
        ("26", ""),
        ("Sun Dec 17, 2023 11:23 am", ""),
        ("Written By: Ann Lee", "Ann Lee"),
        ("By Ann Lee", "Ann Lee"),
        ("Byron Lee", "Byron Lee"),
        ("Maria &amp; Katerina", "Maria & Katerina"),
        ("Oleg P Jul 18, 2025 7 min", "Oleg P"),
        ("BeauHD on Friday December 19, 2025 @08:00PM from the dept.", "BeauHD"),
        ("Ann Lee | October 15, 2025", "Ann Lee"),
        ("x" * 10_000, ""),
    ],
)
def test_names_of_authors(said: str, name: str) -> None:
    """What stands where authors do is not always one."""
    assert name_of(said) == name
    assert page(f'<meta name="author" content="{said}">')["author"] == name


def test_a_title_that_is_the_sites_name() -> None:
    """The headline is taken for it, but for a front page and where there are several."""
    head = '<title>News</title><meta property="og:site_name" content="News">'
    assert page(head, "<h1>Storm over the coast</h1>")["title"] == "Storm over the coast"
    assert page(head, "<h1>Storm over the coast</h1>", "http://news.test/")["title"] == "News"
    assert page(head, "<h1>One</h1><h1>Two</h1>")["title"] == "News"
    assert page(head, "<h1>News</h1><h1>Storm</h1>")["title"] == "Storm"
