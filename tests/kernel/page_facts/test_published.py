"""Dates of publication are ISO 8601 or absent, authors are names, titles are not the site's name."""

from __future__ import annotations

import pytest
from nephila.kernel.page_facts.author_names import name_of, single_names
from nephila.kernel.page_facts.published import as_date, line_dates, url_date
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
        ("Storm over the coast|Joined: June 25, 2015|It was loud.", ""),
        ("Storm over the coast|By Ann Lee|June 25, 2025|It was loud.", "2025-06-25"),
        ("Storm over the coast|Published on 25 June 2025, 10:00|It", "2025-06-25"),
        ("25. Juni 2025|Storm over the coast|It", "2025-06-25"),
        ("Storm over the coast|Updated June 27, 2025|Posted June 25, 2025", "2025-06-25"),
        ("Storm over the coast|The ship that sank there on June 25, 1925 in the great storm had sailed from here.", ""),
        ("Storm over the coast|from June 25, 2025 to June 27, 2025", ""),
        ("Another line|June 25, 2025", ""),
        ("Storm over the coast|a|b|c|d|e|f|g|h|June 25, 2025", ""),
    ],
)
def test_a_date_beside_the_headline(lines: str, date: str) -> None:
    """A short line with little else; a sentence with a date in it is none."""
    body = "".join(f"<h1>{one}</h1>" if one.startswith("Storm") else f"<p>{one}</p>" for one in lines.split("|") if one)
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


@pytest.mark.parametrize(
    ("line", "published", "modified"),
    [
        ("Published on Oct 21, 2025 Updated on Mar 9, 2026", "2025-10-21", "2026-03-09"),
        ("December 3, 2025. Updated: December 7, 2025", "2025-12-03", "2025-12-07"),
        ("by Ann Lee ● December 23, 2025 ● 6 min read, with pictures", "2025-12-23", ""),
        ("By Matthew Richardson ⋅ Review Editor ⋅ Updated November 18, 2025", "", "2025-11-18"),
        ("by Amanda · Dec 20, 2025 at 3:00 am · One comment so far", "2025-12-20", ""),
        ("The first of the ships sank on June 25, 2025 near the coast of Ireland", "", ""),
        ("from June 25, 2025 to June 27, 2025", "", ""),
    ],
)
def test_dates_of_a_line(line: str, published: str, modified: str) -> None:
    """A date between separators or behind a label counts in a longer line; a date in a sentence does not."""
    assert line_dates(line) == (published, modified)


@pytest.mark.parametrize(
    ("url", "day"),
    [
        ("https://a.test/2025/12/18/spiders", "2025-12-18"),
        ("https://a.test/blog/2023/october/03/wine/", "2023-10-03"),
        ("https://a.test/articles/2025-12-15+Rust", "2025-12-15"),
        ("https://a.test/2025/13/40/x", ""),
        ("https://a.test/2025/12/", ""),
        ("https://a.test/p/12345-12-15", ""),
        ("https://a.test/x?date=2025-12-15", ""),
        ("", ""),
    ],
)
def test_the_day_in_a_url(url: str, day: str) -> None:
    """A whole day in the path."""
    assert url_date(url) == day


def test_the_day_in_the_url_decides_between_dates_that_nobody_stated() -> None:
    """It precedes other dates of the page, and a stated date only if they differ by a time zone."""
    url, time = "http://a.test/2025/12/18/x", "<time datetime=2024-01-01>old</time>"
    assert page(body=time, url=url)["published"] == "2025-12-18"
    assert page(body="<time datetime=2025-12-18T19:05:00-08:00>x</time>", url=url)["published"][:13] == "2025-12-18T19"
    assert page('<meta name=date content="2025-12-19T03:05:00Z">', url=url)["published"] == "2025-12-18"
    assert page('<meta name=date content="2021-12-19">', url=url)["published"] == "2021-12-19"


def test_the_time_of_a_build_is_no_publication() -> None:
    """Stated as published and changed at once, and later than the date that readers see."""
    stated = '<meta property="article:published_time" content="{}"><meta property="article:modified_time" content="{}">'
    body = "<h1>Storm over the coast</h1><p>June 25, 2024</p>"
    assert page(stated.format("2025-11-20", "2025-11-20"), body)["published"] == "2024-06-25"
    assert page(stated.format("2025-11-20", "2025-11-21"), body)["published"] == "2025-11-20"


def test_the_last_change() -> None:
    """Stated, in an element of schema.org, or seen; a page that has only this one was published then."""
    found = page('<meta property="article:modified_time" content="2025-01-03"><meta name=date content="2025-01-02">')
    assert (found["published"], found["modified"]) == ("2025-01-02", "2025-01-03")
    body = "<time itemprop=dateModified datetime=2025-01-03>x</time><time itemprop=datePublished datetime=2025-01-02>"
    found = page(body=body)
    assert (found["published"], found["modified"]) == ("2025-01-02", "2025-01-03")
    found = page(body="<h1>Storm over the coast</h1><p>Updated: June 27, 2025</p>")
    assert (found["published"], found["modified"]) == ("2025-06-27", "2025-06-27")


def test_the_order_of_day_and_month_is_that_of_the_language() -> None:
    """03/04/2026 is a date only if the language of the page says which."""
    body = "<h1>Storm over the coast</h1><p>03/04/2026</p></body>"
    for lang, day in (("en-US", "2026-03-04"), ("en-GB", "2026-04-03"), ("de", "2026-04-03"), ("en", ""), ("", "")):
        source = f"<html lang='{lang}'><body>{body}</html>".encode()
        assert extract(source, "http://news.test/a")["published"] == day


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("Ann Lee and Bob Roe", ["Ann Lee", "Bob Roe"]),
        ("Ann Lee; Bob", ["Ann Lee", "Bob"]),
        ("Ann & Bob Lee", ["Ann & Bob Lee"]),
        ("Lee, Ann", ["Lee, Ann"]),
        ("", []),
    ],
)
def test_single_names(said: str, names: list[str]) -> None:
    """Several names in one text are separated where that is certain."""
    assert single_names(said) == names


def test_section_and_image_are_stated() -> None:
    """By <meta> or by an article in JSON-LD; an image is absolute."""
    found = page('<meta property="article:section" content="Sea"><meta property="og:image" content="/a.png">')
    assert (found["section"], found["image"]) == ("Sea", "http://news.test/a.png")
    data = '{"@type":"NewsArticle","articleSection":["Sea","Land"],"image":{"@type":"ImageObject","url":"/b.png"}}'
    found = page(f"<script type=application/ld+json>{data}</script>")
    assert (found["section"], found["image"]) == ("Sea", "http://news.test/b.png")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("By Matthew Richardson ⋅ Review Editor ⋅ Updated November 18, 2025", "Matthew Richardson"),
        ("Written by Ann van der Lee on 2 May 2025", "Ann van der Lee"),
        ("by Meaghan Weeden ● December 23, 2025 ● 6 min read", "Meaghan Weeden"),
        ("By the end of the year all of them had left", ""),
        ("By Hand, With Love, For The Whole Long And Rainy Season", ""),
        ("Bycatch Is A Problem", ""),
        ("By", ""),
    ],
)
def test_an_author_whom_readers_see(line: str, name: str) -> None:
    """Behind "By" near the headline, if the words have capitals."""
    found = page(body=f"<h1>Storm over the coast</h1><p>{line}</p><p>It was loud.</p>")
    assert found["author"] == ("Hand" if line.startswith("By Hand") else name)


def test_the_name_is_an_element_of_its_own() -> None:
    """Beside the label before it and the office behind it."""
    body = "<div class=author-box><span>Written By</span><b>Ann Lee</b><span>Founder</span></div>"
    assert page(body=body)["author"] == "Ann Lee"


def test_what_is_behind_a_bar_is_no_part_of_the_title_if_the_rest_is_the_only_h1() -> None:
    """Of several h1, and behind a dash, it stays."""
    bar, dash = '<meta property="og:title" content="Storm | Sea">', '<meta property="og:title" content="Storm - Sea">'
    assert page(bar, "<h1>Storm</h1>")["title"] == "Storm"
    assert page(bar, "<h1>Storm</h1><h1>Calm</h1>")["title"] == "Storm | Sea"
    assert page(bar, "<h1>Calm</h1>")["title"] == "Storm | Sea"
    assert page(dash, "<h1>Storm</h1>")["title"] == "Storm - Sea"
