"""Titles without the name of their site, and bylines out of JSON-LD and <meta>."""

from __future__ import annotations

import pytest
from nephila.kernel.page_facts.byline import byline
from nephila.kernel.page_facts.headline import from_title, without_site, word_overlap


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("Why spiders spin at night | Spider News", "Why spiders spin at night"),
        ("Spider News | Why spiders spin at night", "Why spiders spin at night"),
        ("Webs - Spider News", "Webs - Spider News"),
        ("Part one: why all of the spiders spin", "why all of the spiders spin"),
        ("Why all the old spiders spin: an answer", "Why all the old spiders spin: an answer"),
        ("  Two \n lines ", "Two lines"),
        ("", ""),
        ("|||", "|||"),
    ],
)
def test_site_names_go(title: str, found: str) -> None:
    """The part behind the last separator is the site, unless too little would be left."""
    assert from_title(title, [], []) == found


def test_a_short_title_asks_the_only_h1() -> None:
    """And a heading that is the whole title keeps its colon."""
    assert from_title("Home", [], ["Why some spiders spin at night"]) == "Why some spiders spin at night"
    assert from_title("Home", [], ["one", "two"]) == "Home"
    assert from_title("News: why all spiders spin", ["News: why all spiders spin"], []) == "News: why all spiders spin"


def test_of_two_names_the_one_like_the_title() -> None:
    """Sites put their own name where the article's should stand."""
    script = '{"@type":["NewsArticle"],"name":"Spider News","headline":"Why spiders spin","author":{"name":"A. B."}}'
    assert byline([], [script], "Why spiders spin").title == "Why spiders spin"
    assert byline([("og:title", "Open graph")], ['{"@type":"WebSite","name":"x"}'], "t").title == "Open graph"
    assert word_overlap("", "x") == 0.0


@pytest.mark.parametrize(
    ("title", "headings", "found"),
    [
        ("Why spiders spin - Spider News", ["Webs", "why  spiders\nspin"], "Why spiders spin"),
        ("Why spiders spin — spider-news", ["Why spiders spin"], "Why spiders spin"),
        ("Why spiders spin – Spider News", ["Why spiders spin"], "Why spiders spin – Spider News"),
        ("Why spiders spin - Spider News", ["Spider News"], "Why spiders spin - Spider News"),
        ("Why spiders spin - and eat", ["Why spiders spin"], "Why spiders spin - and eat"),
    ],
)
def test_behind_a_dash_a_name_goes_where_a_heading_is_left(title: str, headings: list[str], found: str) -> None:
    """Headlines have dashes themselves; what a heading says is one whole."""
    assert without_site(title, "Spider News", "", headings) == found


@pytest.mark.parametrize(
    ("said", "title", "found"),
    [
        ("Spiders &amp; webs &#8211; a guide", "Spiders & webs", "Spiders & webs – a guide"),
        ("How to write &amp; in HTML", "How to write &amp; in HTML", "How to write &amp; in HTML"),
        ("AT&T", "x", "AT&T"),
    ],
)
def test_entities_that_nobody_has_read(said: str, title: str, found: str) -> None:
    """In JSON, or written twice; unless the title is about them."""
    assert byline([], ['{"@type":"Article","headline":"' + said + '"}'], title).title == found


def test_json_ld_in_cdata_and_several_names_in_one_property() -> None:
    """As pages in the wild have it."""
    script = '\n//<![CDATA[\n{"@type":"Article","headline":"H","datePublished":"2026-01-02"}\n//]]>\n'
    found = byline([("og:title dc.title", "M")], [script])
    assert (found.title, found.published) == ("H", "2026-01-02")
    found = byline([("x dc.title", "M"), ("dcterms.creator", "C")], [])
    assert (found.title, found.author) == ("M", "C")


@pytest.mark.parametrize(
    ("title", "site", "host", "found"),
    [
        ("Why spiders spin | Spider News", "Spider News", "", "Why spiders spin"),
        ("Why spiders spin | SpiderNews", "", "www.spidernews.test", "Why spiders spin"),
        ("Webs · Threads · a.b-c", "", "a.b-c", "Webs · Threads"),
        ("Why spiders spin - Spider News", "Spider News", "", "Why spiders spin - Spider News"),
        ("Why spiders spin | Old News", "Spider News", "x.test", "Why spiders spin | Old News"),
        ("| Spider News", "Spider News", "", "| Spider News"),
        ("? | Spider News", "Spider News", "", "? | Spider News"),
        ("Spider News", "Spider News", "spidernews.test", "Spider News"),
        ("Webs | ", "", "", "Webs | "),
    ],
)
def test_only_the_name_of_the_site_goes_from_a_stated_title(title: str, site: str, host: str, found: str) -> None:
    """Behind a bar, where the page or its host says that this is the site."""
    assert without_site(title, site, host) == found
