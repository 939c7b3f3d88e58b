"""The index of a page's texts gives the places that a walk of the page gives."""

from __future__ import annotations

import pytest
from nephila_rules.induction.induce import Example, induce
from nephila_rules.induction.places import _page_texts, _scanned
from nephila_rules.induction.wanted import folded
from nephila_rules.runtime.document import Document

from tests.console import shop

BODY = """<h1> It’s  a <b>table</b></h1><p class=price data-price=12.5>$12.50</p><p>12.5</p>
<a href=/p/1 title=Table>x</a>
<time datetime=2024-05-01>1 May 2024</time><p>2024-05-01T10:00</p><ul><li>oak<li>oak</ul><script>oak</script><p>"""


@pytest.mark.parametrize(
    "wanted",
    ["It's a table", "It’s a table", "12.5", "$12.50", "/p/1", "http://a.test/p/1", "2024-05-01", "oak", "none"],
)
def test_an_index_gives_what_a_walk_gives(wanted):
    """Also for values that have several spellings: quotes, numbers, URLs, dates."""
    document = Document(f"<body>{BODY}</body>".encode(), "http://a.test/")

    def places(found: object) -> list[tuple[int, int, str]]:
        return [(one.depth, one.node.mem_id, one.attribute) for one in found]  # type: ignore[attr-defined]

    assert places(_page_texts(document).of(folded(wanted))) == places(_scanned(document, folded(wanted), None))


def test_fewer_choices_are_the_first_of_more():
    """Selections that cannot be among the best are not tried on the other pages."""
    pages = [Document(shop.product(number).encode(), f"{shop.HOST}/p/{number}") for number in range(1, 12)]
    for value in ("Table 1", "$10.50", "1.5 of 5"):
        example = Example(pages[0], {"f": value})
        all_of, three = (induce([example], pages[1:], most)["f"] for most in (100, 3))
        assert [one.cost for one in three] == [one.cost for one in all_of[:3]]
