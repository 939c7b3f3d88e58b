"""What a page states about itself is resolved from its stored row as from the page."""

from __future__ import annotations

import pytest
from nephila.kernel.page_facts.facts import NO_FACTS
from nephila.kernel.page_facts.row_facts import row_facts
from nephila.native import page_pass
from nephila.parser.single.extract import extract

URL = "https://news.example/2026/11/23/bread"
PAGE = b"""<!doctype html><html lang=en><head><title>Bread rises - News</title>
<meta property=og:title content="Bread rises"><meta property=og:description content="How bread rises.">
<meta property=article:published_time content="2026-11-22T23:30:00-05:00">
<meta property=article:modified_time content="2026-11-24"><meta property=article:section content=Food>
<meta name=author content="By Ann Lee and Bob Ray"><meta property=og:image content="/a.jpg"></head>
<body><h1>Bread rises</h1><p>Dough rises overnight, and nobody in the bakery knows exactly why it does so.</p></body>"""


def facts(**changes):
    """Facts of a row without statements, but for these."""
    row = {"url": "https://a.example/x", "title": "T", "lang": "", "meta": {}}
    return row_facts(**{**row, **changes})


def test_a_row_resolves_as_the_page():
    """The same dates, authors, section, image and description, without the page."""
    found = page_pass(PAGE, URL, "utf-8")
    there = facts(url=URL, title=found.title, lang=found.lang, meta=dict(reversed(found.meta)))
    page = extract(PAGE, URL)
    assert there.published == page["published"] == "2026-11-23"  # in the URL; they differ by the time zone
    assert there.modified == page["modified"] == "2026-11-24"
    assert list(there.authors) == page["authors"] == ["Ann Lee", "Bob Ray"]
    assert (there.section, there.image) == (page["section"], page["image"]) == ("Food", "https://news.example/a.jpg")
    assert there.description == page["description"] == "How bread rises."


def test_a_visible_date_and_name_near_the_headline():
    """As readers see them, where nothing is stated."""
    found = facts(meta={"dateline": "By Ann Lee\nJune 25, 2025"})
    assert (found.published, found.authors) == ("2025-06-25", ("Ann Lee",))


def test_the_date_of_an_element_precedes_a_visible_one():
    found = facts(meta={"time": "2025-06-24", "dateline": "June 25, 2025"})
    assert found.published == "2025-06-24"


def test_the_names_of_a_document():
    meta = {"published": "2024-01-02", "author": "Ann Lee; Bob Ray"}
    assert facts(meta=meta).authors == ("Ann Lee", "Bob Ray")


def test_versions_in_other_languages_are_absolute():
    meta = {"hreflang": "de-AT /de\nx-default https://a.example/\nfr http://["}
    assert facts(meta=meta).languages == ("de-at https://a.example/de", "x-default https://a.example/")


def test_an_article_in_json_ld_describes_a_page_without_another_description():
    meta = {"jsonld:article:description": "Of bread.", "jsonld:article:image": "/b.jpg"}
    assert (facts(meta=meta).description, facts(meta=meta).image) == ("Of bread.", "https://a.example/b.jpg")
    assert facts(meta=meta | {"description": "Stated."}).description == "Stated."


@pytest.mark.parametrize(
    "meta",
    [{}, {"og:image": "http://[", "author": "https://a.example/ann", "date": "soon"}, {"published": 7, "author": None}],
)
def test_what_is_no_fact_is_left_out(meta):
    """Also values that are no text."""
    assert facts(meta=meta) == NO_FACTS
