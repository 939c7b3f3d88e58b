"""Selectors from named values: which are chosen, what they give on pages that nobody named values of."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from nephila_rules.induction.css_paths import is_given_name
from nephila_rules.induction.induce import Choice, Example, induce
from nephila_rules.induction.rule_text import url_pattern
from nephila_rules.induction.wanted import folded
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.select import select, value_or_text


def page(body: str, url: str = "http://shop.test/p/1") -> Document:
    """A document."""
    return Document(f"<!doctype html><html><head>{{}}</head><body>{body}</body></html>".encode(), url)


def product(
    name: str, price: str, *, more: str = "", tags: tuple[str, ...] = ("new",), code: str = "x1Yz9"
) -> Document:
    """A page of a shop with generated and given class names, and a list of other products."""
    listed = "".join(f'<li class="tag">{tag}</li>' for tag in tags)
    return page(
        f'<nav><a href="/">Shop</a></nav><div class="css-{code} product"><h1 class="_{code}">{name}</h1>'
        f"<div class={code}><span class='amount'>{price}</span></div>"
        f"<dl><dt>Weight</dt><dd>{len(name)} kg</dd>{more}<dt>Made in</dt><dd>Peru</dd></dl>"
        f'<ul>{listed}</ul></div><aside><li class="tag">ad</li><span class="price amount">1.00</span></aside>'
    )


def chosen(examples: list[Example], others: tuple[Document, ...] = (), field: str = "f") -> Choice:
    """The best selection of a field."""
    return induce(examples, others)[field][0]


def given(choice: Choice, document: Document) -> list[str]:
    """What a selection gives on a page."""
    found = [folded(value_or_text(one)) for one in select(choice.selection, document, None)]
    return found if choice.many else found[:1]


def example(document: Document, partial: tuple[str, ...] = (), **values: str | list[str]) -> Example:
    """A page with named values."""
    return Example(document, values, frozenset(partial))


def test_an_instruction_in_a_page_has_no_name_and_is_no_place():
    """lexbor keeps <?xml ?> as a node without a tag."""
    document = page("<p class=price>5</p><?xml version=1?><b>x</b>")
    assert chosen([example(document, f="x")]).selection.expression == "b"


FIRST = product("Lamp", "$12.50")
SECOND = product("Long table", "$99.00", more="<dt>Colour</dt><dd>red</dd>", code="q8Rt2")
THIRD = product("Chair of oak", "$7.00", code="mm3Kp", tags=("old", "sale"))


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"f": "Lamp"}, ["Chair of oak"]),
        ({"f": "$12.50"}, ["$7.00"]),
        ({"f": "4 kg"}, ["12 kg"]),
        ({"f": "Peru"}, ["Peru"]),
    ],
)
def test_one_example_gives_the_value_of_other_pages(values: Mapping[str, str], wanted: list[str]) -> None:
    """Names that a program made differ on each page: the choice has none of them."""
    best = chosen([Example(FIRST, values)], (SECOND,))
    assert given(best, THIRD) == wanted
    assert not {"x1Yz9", "css-x1Yz9"} & set(best.selection.expression.replace(".", " ").split())


def test_a_label_beats_a_position() -> None:
    """A second example has one row more, so the place of the row is another."""
    best = chosen([example(FIRST, f="Peru"), example(SECOND, f="Peru")])
    assert 'normalize-space()="Made in"' in best.selection.expression


def test_types_come_from_the_values() -> None:
    """Price, number, date, URL, text."""
    document = page("<b>$3.10</b><i>1,204</i><time datetime=2026-01-02>2 Jan</time><a href=/x.html>here</a><p>word</p>")
    wanted = {
        "$3.10": "price",
        "1,204": "number",
        "2026-01-02": "date",
        "http://shop.test/x.html": "url",
        "word": "text",
    }
    assert {value: chosen([example(document, f=value)]).type for value in wanted} == wanted


def test_structured_data_comes_before_markup() -> None:
    """JSON-LD, microdata, meta elements, in this order."""
    ld = '<script type="application/ld+json">{"@type": "Product", "offers": {"@type": "Offer", "price": 12.5}}</script>'
    marked = "<b itemprop=price content=12.50>12.50</b><meta name=cost content=12.5><i class=amount>12.50</i>"
    bodies = (ld + marked, marked, marked.replace("itemprop", "x"), "<i class=amount>12.50</i>")
    sources = [chosen([example(page(body), f="12.50")]).selection.source for body in bodies]
    assert sources == ["jsonld", "itemprop", "meta", "css"]


def test_a_list_has_the_named_values_and_no_others() -> None:
    """The advertisement beside has the same class."""
    best = chosen([example(FIRST, f=["new"])], (SECOND,))
    assert (best.many, given(best, THIRD)) == (True, ["old", "sale"])


def test_two_values_of_a_list_are_enough_where_more_may_follow() -> None:
    """As two clicks do."""
    rows = page("<table>" + "".join(f"<tr><td class=name>n{i}</td><td>{i}</td></tr>" for i in range(9)) + "</table>")
    best = chosen([example(rows, ("f",), f=["n0", "n1"])])
    assert given(best, rows) == [f"n{i}" for i in range(9)]


def test_a_part_of_a_text_is_cut_out() -> None:
    """By what stands around it on every page; a number stands for any."""
    pages = [
        page(f"<p class=by>{i}. By {name}, staff writer</p>")
        for i, name in ((1, "Ada"), (20, "Grace Hopper"), (3, "Al"))
    ]
    best = chosen([example(pages[0], f="Ada"), example(pages[1], f="Grace Hopper")])
    assert given(best, pages[2]) == ["Al"]


def test_a_page_without_the_value_rules_out_what_gives_one_there() -> None:
    """An optional field that is named as empty."""
    without = page("<p class=note>ships today</p>")
    with_one = page("<p class=note>ships today</p><p class='note old'>was 9.00</p>")
    assert given(chosen([example(with_one, f="was 9.00"), example(without, f="")]), without) == []


def test_pages_of_two_kinds_have_a_selector_each() -> None:
    """No selector gives both."""
    one, two = page("<h2 class=headline>A</h2>"), page("<p class=caption>B</p>")
    best = chosen([example(one, f="A"), example(two, f="B")])
    assert [given(best, document) for document in (one, two)] == [["A"], ["B"]]


def test_a_value_that_does_not_stand_on_the_page_has_no_selector() -> None:
    assert induce([example(FIRST, f="no such text")]) == {"f": []}


def test_what_all_pages_share_is_not_taken_for_the_value() -> None:
    """With one example the frame of the site has the same word; other pages tell."""
    pages = [
        page(f"<header><b class=brand>Acme</b></header><p><span>{name}</span></p>")
        for name in ("Acme", "Bolt", "Cog", "Dux")
    ]
    best = chosen([example(pages[0], f="Acme")], tuple(pages[1:]))
    assert given(best, pages[2]) == ["Cog"]


@pytest.mark.parametrize("name", ["price", "product-title", "mainPrice", "col-2", "h1title", "btn"])
def test_names_that_people_gave(name: str) -> None:
    assert is_given_name(name)


@pytest.mark.parametrize(
    "name", ["css-1q2w3e", "x1Yz9", "sc-bdVaJa", "_3kXyZ", "item-48213", "active", "ember123", "bcdfg", "a b"]
)
def test_names_that_programs_made(name: str) -> None:
    assert not is_given_name(name)


@pytest.mark.parametrize(
    ("urls", "same", "other"),
    [
        (["http://a.test/p/12-lamp.html"], "http://a.test/p/9-x.html", "http://a.test/q/12-lamp.html"),
        (
            ["http://a.test/2026/01/x", "http://a.test/2025/12/y"],
            "http://a.test/2024/3/z?a=1",
            "http://a.test/about/us/x",
        ),
        (
            ["http://a.test/item-1.html", "http://a.test/item-22.html"],
            "http://a.test/item-5.html",
            "http://a.test/list-5.html",
        ),
        (["http://a.test/en/p/1", "http://a.test/en/p/q/2"], "http://a.test/en/p/z", "http://a.test/de/p/1"),
    ],
)
def test_the_pattern_of_urls(urls: list[str], same: str, other: str) -> None:
    """Numbers for numbers, anything within the segment that differs."""
    import re

    found = re.compile(url_pattern(urls))
    assert all(found.search(url) for url in [*urls, same])
    assert not found.search(other)
