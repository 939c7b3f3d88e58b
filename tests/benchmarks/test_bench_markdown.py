"""What the bench of Markdown counts as a link of a page."""

import pytest
from lxml import html

from benchmarks.bench_markdown import units


@pytest.mark.parametrize(
    ("content", "links"),
    [
        ("<p>see <a href=#name>the name</a></p>", ["thename"]),
        ("<h2>By <a href=/weavers>the weavers</a></h2>", ["theweavers"]),
        ("<h2 id=name><a class=permalink href=#name>Name</a></h2>", []),
        ("<h1><a href=#>The book</a></h1>", []),
    ],
    ids=["within the page", "in a heading", "of a heading to itself", "of a heading to the top"],
)
def test_a_heading_is_no_link_to_its_own_page(content: str, links: list[str]) -> None:
    """Man pages and mdBook link each heading to itself, so that its address can be copied."""
    assert list(units(html.fromstring(f"<div>{content}</div>"))["links"]) == links
