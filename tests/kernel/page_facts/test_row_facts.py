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
    row = {"url": "https://a.example/x", "title": "T", "lang": "", "content_type": "text/html", "meta": {}, "text": ""}
    return row_facts(**{**row, **changes})


def test_a_row_resolves_as_the_page():
    """The same dates, authors, section, image and description, without the page."""
    found = page_pass(PAGE, URL, "utf-8")
    there = facts(url=URL, title=found.title, lang=found.lang, meta=dict(reversed(found.meta)), text=found.text)
    page = extract(PAGE, URL)
    assert there.published == page["published"] == "2026-11-23"  # in the URL; they differ by the time zone
    assert there.modified == page["modified"] == "2026-11-24"
    assert list(there.authors) == page["authors"] == ["Ann Lee", "Bob Ray"]
    assert (there.section, there.image) == (page["section"], page["image"]) == ("Food", "https://news.example/a.jpg")
    assert there.description == page["description"] == "How bread rises."


def test_a_visible_date_and_name_near_the_headline():
    """As readers see them, where nothing is stated."""
    text = "Bread rises\nBy Ann Lee\nJune 25, 2025\nDough rises overnight."
    found = facts(title="Bread rises", text=text)
    assert (found.published, found.authors) == ("2025-06-25", ("Ann Lee",))


def test_lines_of_documents_are_not_searched():
    """A PDF has the dates of its metadata alone."""
    meta = {"published": "2024-01-02", "author": "Ann Lee; Bob Ray"}
    found = facts(content_type="application/pdf", meta=meta, text="T\nJune 25, 2025")
    assert (found.published, found.authors) == ("2024-01-02", ("Ann Lee", "Bob Ray"))


@pytest.mark.parametrize(
    "meta",
    [{}, {"og:image": "http://[", "author": "https://a.example/ann", "date": "soon"}, {"published": 7, "author": None}],
)
def test_what_is_no_fact_is_left_out(meta):
    """Also values that are no text."""
    assert facts(meta=meta) == NO_FACTS
