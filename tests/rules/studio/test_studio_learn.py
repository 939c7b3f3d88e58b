"""Clicks on pages become fields: which selector is chosen, what a correction changes, items in boxes."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila_rules.runtime.document import Document
from nephila_rules.studio.draft import Draft, Step
from nephila_rules.studio.learn import step
from nephila_rules.studio.numbering import element, elements, numbers
from nephila_rules.studio.rule import document_of, name_of, patterns
from nephila_rules.studio.suggest import Pages, offers
from nephila_rules.studio.table import rows

from tests.console import shop


def document(number: int, text: str = "") -> Document:
    """A page of the shop."""
    return Document((text or shop.product(number)).encode(), f"{shop.HOST}/p/{number}")


class Studio:
    """A draft and its pages."""

    def __init__(self, *documents: Document, shown: int = 0) -> None:
        self.documents = list(documents) or [document(number) for number in range(1, 12)]
        self.draft = Draft(self.documents[shown].url, name="shop", pattern="/")

    def pages(self) -> Pages:
        """As the child process has them."""
        shown = next(one for one in self.documents if one.url == self.draft.url)
        picked = {one.url for field in self.draft.fields for one in field.picks} | {shown.url}
        others = [one for one in self.documents if one is not shown]
        return Pages(shown, {one.url: one for one in self.documents if one.url in picked}, others)

    def click(self, text: str, kind: Step = "new") -> Studio:
        """On the innermost element with this text, or the image."""
        found = self.pages().shown
        named = [at for at, one in enumerate(elements(found)) if one.text(deep=True).strip() == text or one.tag == text]
        self.draft = step(self.draft, kind, named[-1], self.pages())
        return self

    def fields(self) -> dict[str, object]:
        """Of the rule."""
        return document_of(self.draft)["spec"]["fields"]


def test_a_click_gives_name_type_selector_and_whether_it_is_required():
    """Found from the element and from ten other pages; the generated class is not used."""
    studio = Studio().click("Table 1").click("$10.50").click("img").click("1.5 of 5")
    assert studio.fields() == {
        "title": {"css": "h1", "required": True},
        "price": {"css": ".price", "type": "price", "required": True},
        "image": {"css": "img", "attr": "src", "type": "url", "required": True},
        "rating": {"css": ".rating"},
    }


def test_a_click_on_a_marked_value_chooses_its_field():
    """It makes no second one."""
    studio = Studio().click("Table 1").click("$10.50").click("Table 1")
    assert (len(studio.draft.fields), studio.draft.active) == (2, 0)


def test_selectors_are_offered_in_the_order_of_their_kinds():
    """Structured data, CSS, XPath, whichever is chosen."""
    data = '<script type="application/ld+json">{"@type": "Product", "name": "Table %d"}</script>'
    found = [document(number, shop.product(number) + data % number) for number in range(1, 6)]
    studio = Studio(*found).click("Table 1")
    kinds = [one.kind for one in offers(studio.draft, studio.draft.fields[0], studio.pages())]
    assert kinds == sorted(kinds, key=["data", "css", "xpath"].index)
    assert set(kinds) == {"data", "css", "xpath"}


def test_a_second_value_makes_a_list_and_not_this_narrows_it():
    """To the selector that leaves the refused value out."""
    text = "<ul class=tags><li>a<li>b</ul><ul class=other><li>c<li>d</ul>"
    studio = Studio(document(1, text)).click("a").click("b", "more")
    assert studio.draft.fields[0].many
    studio.draft = studio.draft.with_field(0, studio.draft.fields[0])
    studio.click("c", "not")
    assert rows(studio.draft, studio.documents)[0].items == [{studio.draft.fields[0].name: "a · b"}]


def test_a_value_named_on_a_page_of_another_kind_is_learnt():
    """The selector holds on both."""
    other = document(99, "<main><p>Oak<div class=cost>$3.20</div></main>")
    studio = Studio(document(1), other).click("$10.50")
    assert rows(studio.draft, [other])[0].items == [{"price": ""}]
    studio.draft = Draft(other.url, name="shop", pattern="/", fields=studio.draft.fields, active=0, mode="here")
    studio.click("$3.20", "here")
    assert rows(studio.draft, studio.documents)[1].items == [{"price": "3.2 USD"}]
    assert rows(studio.draft, studio.documents)[0].items == [{"price": "10.5 USD"}]


def test_two_values_of_a_list_give_the_box_of_an_item():
    """Fields are relative to it, those that were there already too; the next page is a link."""
    studio = Studio(*(Document(shop.listing(number).encode(), f"{shop.HOST}/list/{number}") for number in (1, 2)))
    studio.click("$100.50").click("Table 10").click("Table 11", "more")
    studio.draft = step(studio.draft, "items", 0, studio.pages())
    studio.click("More", "next")
    spec = document_of(studio.draft)["spec"]
    assert spec["each"] == {"css": ".card"}
    assert spec["pagination"] == {"css": ".next"}
    row = rows(studio.draft, studio.documents)[1]
    assert (row.total, row.items[0]) == (10, {"price": "200.5 USD", "title": "Table 20"})
    studio.draft = step(studio.draft, "page", 0, studio.pages())
    assert not studio.draft.each


def test_the_part_around_an_element_can_be_taken():
    """Up to the body."""
    studio = Studio(document(1, "<body><div class=address><b>Road 1</b>, Lima</div>")).click("Road 1")
    studio.draft = step(studio.draft, "wider", 0, studio.pages())
    assert rows(studio.draft, studio.documents)[0].items[0].popitem()[1] == "Road 1, Lima"
    with pytest.raises(UsageError, match="no larger part"):
        step(studio.draft, "wider", 0, studio.pages())


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("more", "Table 1", "no field is chosen"),
        ("items", "Table 1", "no field is chosen"),
        ("next", "Table 1", "this is no link"),
        ("new", "meta", "is empty"),
    ],
)
def test_a_step_that_cannot_be_taken_says_why(kind, text, message):
    """And the draft stays as it is."""
    studio = Studio(document(1, "<meta name=x><h1>Table 1</h1>"))
    with pytest.raises(UsageError, match=message):
        studio.click(text, kind)
    assert studio.draft.fields == ()


def test_numbers_are_those_of_document_order():
    """Also of elements that are not shown; the same bytes give the same ones."""
    one, two = document(1), document(1)
    assert [node.tag for node in elements(one)][:4] == ["html", "head", "title", "body"]
    assert sorted(numbers(one).values()) == list(range(len(numbers(two))))
    assert element(one, 2).tag == element(two, 2).tag == "title"
    assert element(one, 10_000) is None


def test_patterns_go_from_this_page_to_the_site():
    """Each is wider than the one before; a name for the rule comes from the URL."""
    found = {one.kind: one.pattern for one in patterns("http://shop.test/p/7", ["http://shop.test/p/19"])}
    assert found["page"] == r"^http://shop\.test/p/7$"
    assert found["pages"].startswith(r"^http://shop\.test/p/\d+")
    assert (found["folder"], found["site"]) == (r"^http://shop\.test/p/", r"^http://shop\.test/")
    assert (name_of("http://www.shop.test/p/7"), name_of("http://shop.test/7")) == ("shop-test-p", "shop-test")
