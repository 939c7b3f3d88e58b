"""Second pages in a rule: the link to one, what an item waits for, who reads the second page, what is refused."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from nephila.kernel.pages.item_parts import MISSING, NO_LINK, NOT_READ, NOT_YET
from nephila.kernel.runtime.errors import UserError
from nephila_rules.run_rule import RuleRunner
from nephila_rules.runtime.match import RuleSet
from nephila_rules.stored_pages import StoredPage

from tests.rules.execution.rule_rig import items, ran, rule

SHOP = """
match: {url: '^https://a.test/p/'}
fields: {name: h1}
followUps:
  reviews:
    css: a.reviews
    url: '/reviews$'
    fields: {stars: {css: .stars, type: number}, texts: {css: .text, all: true}}
"""
URL = "https://a.test/p/1"


@pytest.mark.parametrize(
    ("link", "url", "why"),
    [
        ('<a class=reviews href="/p/1/reviews">', "https://a.test/p/1/reviews", NOT_YET),
        ('<a class=reviews><a class=reviews href="1/reviews#top">', "https://a.test/p/1/reviews", NOT_YET),
        ("", "", NO_LINK),
        ('<a class=reviews href="/p/1/faq">', "https://a.test/p/1/faq", NOT_READ),
        ('<a class=reviews href="http://[">', "", NO_LINK),
    ],
)
def test_an_item_says_what_it_waits_for(link: str, url: str, why: str) -> None:
    """The fields of the second page are there and empty; the mark has its URL and why it is not there."""
    expected = {"name": "N", "stars": None, "texts": [], MISSING: {"reviews": {"url": url, "why": why}}}
    assert items(SHOP, f"<h1>N</h1>{link}", URL) == [expected]


def test_links_to_second_pages_go_on() -> None:
    """Each once, beside what else the rule selects; those that are not read for it do not."""
    spec = "outlinks: []\neach: li\n" + SHOP.replace("match:", "match: ", 1)
    rows = "".join(f"<li><h1>{n}</h1><a class=reviews href=/p/{n % 2}/reviews></a>" for n in range(4))
    found = ran(spec, rows + "<li><h1>x</h1><a class=reviews href=/p/faq></a>", URL)
    assert [link.href for link in found.second_pages] == ["https://a.test/p/0/reviews", "https://a.test/p/1/reviews"]
    assert found.links == []
    assert [msgspec.json.decode(item)[MISSING]["reviews"]["why"] for item in found.items] == [NOT_YET] * 4 + [NOT_READ]


def test_the_second_page_is_read_for_the_rule() -> None:
    """Before the rule itself where both match; with its priority among others."""
    shop, other = rule(SHOP, "shop"), rule("fields: {a: h1}", "zz")
    rules = RuleSet([other.rule, shop.rule])
    names = [one.name for one in rules.for_url("https://a.test/p/1/reviews")]
    assert names == ["shop/reviews", "shop", "zz"]
    assert [one.name for one in rules.for_url(URL)] == ["shop", "zz"]


@pytest.mark.parametrize("kind", ["css", "xpath"])
def test_here_and_in_the_child(kind: str) -> None:
    """A second page's fields, by a rule that is bounded and by one that goes to the child."""
    shop = rule(
        SHOP.replace("{css: .stars,", "{xpath: \"//*[@class='stars']\"," if kind == "xpath" else "{css: .stars,")
    )
    page = StoredPage(
        f"{URL}/reviews", "text/html", "utf-8", b"<p class=stars>4.5</p><p class=text>a<p class=text>b", ""
    )
    with RuleRunner() as runner:
        found = runner.run(shop.page_rules[0], page)
    assert [msgspec.json.decode(item) for item in found.items] == [{"stars": 4.5, "texts": ["a", "b"]}]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("fields: {name: h1}", "outlinks: []"), "spec.followUps complete items, and without fields there are none"),
        (("fields: {stars:", "fields: {name: h2, stars:"), "'name' is also a field of spec.fields"),
        (("css: a.reviews", "attr: href"), "give exactly one of css, xpath, jsonpath"),
        (("    url: '/reviews$'\n", ""), "lacks the key 'url'"),
        (("'/reviews$'", "'(?=x)'"), "not a valid RE2|RE2"),
        (
            ("fields: {name: h1}", "each: {xpath: //li}\nfields: {name: {xpath: h1}}"),
            "'css' cannot be used inside elements",
        ),
        (
            ("fields: {name: h1}", "fields: {_incomplete: h1}"),
            "a field cannot be called '_incomplete': this name is reserved",
        ),
        (("    css: a.reviews", "    css: a.reviews\n    followUps: {}"), "followUps"),
    ],
)
def test_what_is_refused(change: tuple[str, str], says: str) -> None:
    """One line with its place."""
    assert change[0] in SHOP
    with pytest.raises(UserError) as caught:
        rule(SHOP.replace(*change))
    line = str(caught.value)
    assert re.match(r"rule\.yaml:\d+:\d+: ", line)
    assert re.search(says, line), line
    assert "\n" not in line


def test_a_document_with_second_pages_travels(tmp_path: Any) -> None:
    """Its version is of all that it says; what is read back is the same."""
    from nephila_rules.runtime.load import from_text

    shop = rule(SHOP)
    assert from_text(shop.text).rule == shop.rule
    assert rule(SHOP.replace(".stars", ".star")).rule.version != shop.rule.version
