"""Fields that a page offers by itself."""

from __future__ import annotations

import json

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila_rules.runtime.document import Document
from nephila_rules.studio.draft import Draft, DraftField, Source
from nephila_rules.studio.suggest import Pages
from nephila_rules.studio.suggested import suggestion, with_suggested

from tests.console import shop, styled_shop


def documents(make, count=11):
    return [Document(make(number).encode(), f"http://shop.test/{number}") for number in range(1, count + 1)]


def added(pages: list[Document], draft: Draft | None = None) -> dict[str, DraftField]:
    start = draft or Draft(pages[0].url)
    return {field.name: field for field in with_suggested(start, Pages(pages[0], {}, pages[1:])).fields}


def test_a_product_that_states_itself_is_taken_from_its_statement():
    """The element with the same value is its example, so that other selectors are offered."""
    pages = documents(lambda number: styled_shop.product("http://x.test", number))
    offer = suggestion(pages[0])
    assert offer is not None
    assert (offer.kind, [field.name for field in offer.fields]) == (
        "product",
        ["name", "price", "availability", "image", "rating"],
    )
    fields = added(pages)
    assert fields["price"].take == Source("jsonld", "Product", path="jsonpath", query="$.offers.price")
    assert (fields["price"].type, fields["price"].required) == ("number", True)
    assert fields["name"].picks
    assert not fields["availability"].picks


def test_a_product_that_states_nothing_is_found_by_its_elements():
    """A field that some pages lack keeps the name of its element and is not required."""
    fields = added(documents(shop.product))
    assert fields["name"].take == Source("css", "h1")
    assert (fields["price"].take, fields["price"].type) == (Source("css", ".price"), "price")
    assert (fields["rating"].take, fields["rating"].required) == (Source("css", ".rating"), False)


@pytest.mark.parametrize(
    ("kind", "facts", "names"),
    [
        ("article", {"@type": "NewsArticle", "headline": "A", "datePublished": "2026-11-01"}, ["title", "published"]),
        ("recipe", {"@type": ["Recipe"], "name": "Soup", "totalTime": "PT20M"}, ["name", "time"]),
        ("event", {"@type": "Event", "name": "Fair", "startDate": "2026-12-01"}, ["name", "start"]),
        (
            "job",
            {"@type": "http://schema.org/JobPosting", "title": "Cook", "hiringOrganization": {"name": "Inn"}},
            ["title", "company"],
        ),
    ],
)
def test_each_kind_is_known_by_its_type(kind, facts, names):
    page = Document(f'<script type="application/ld+json">{json.dumps(facts)}</script>'.encode(), "http://a.test/")
    offer = suggestion(page)
    assert offer is not None
    assert (offer.kind, [field.name for field in offer.fields]) == (kind, names)


def test_microdata_and_metadata_count():
    text = '<meta property="og:title" content="A"><h1>A</h1><p itemprop=price content=3.50>3.50<p itemprop=name>Oak'
    assert added([Document(text.encode(), "http://a.test/")])["price"].take == Source("itemprop", "price")


def test_a_page_of_no_kind_offers_nothing():
    page = Document(b"<h1>About</h1><p>We make tables.", "http://a.test/")
    assert suggestion(page) is None
    with pytest.raises(UsageError, match="states nothing about itself"):
        added([page])


def test_a_field_that_the_draft_has_stays():
    pages = documents(shop.product)
    own = DraftField("price", Source("css", ".mine"))
    assert added(pages, Draft(pages[0].url, fields=(own,)))["price"] == own


def test_hostile_statements_are_no_error():
    """Types that are no text, and deep or empty values."""
    for facts in ([{"@type": {"a": 1}}], {"@type": [None, 3, "Product"], "name": None, "offers": [[]]}, "x", 3):
        text = f'<script type="application/ld+json">{json.dumps(facts)}</script><h1></h1>'
        suggestion(Document(text.encode(), "http://a.test/"))
