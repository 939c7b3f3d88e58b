"""Rules read XML as XML: names, case, CDATA, namespaces, empty elements; feeds and sitemaps give items, too."""

from __future__ import annotations

import pytest

from tests.rules.execution.rule_rig import items, ran

XML = "application/xml"
PRODUCTS = """<?xml version="1.0" encoding="utf-8"?>
<products xmlns:g="http://base.google.com/ns/1.0">
<item id="1" g:kind="new"><link>http://x.test/1</link><description><![CDATA[Big & <b>bold</b>&nbsp;]]></description>
<image>http://x.test/i.png</image><Price>12</Price><price>no</price><stock/><title>A</title>
<g:price>12 EUR</g:price></item>
<item id="2"><link>http://x.test/2</link><Price>13</Price><title>B</title></item></products>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xmlns:m="urn:m"><title>F</title><entry><title>One &eacute;</title>
<link href="/1"/><m:note m:at="5">n</m:note><content type="xhtml">
<div xmlns="http://www.w3.org/1999/xhtml"><p>a <i>b</i></p><p>c</p>
</div></content></entry></feed>"""


@pytest.mark.parametrize(
    "fields",
    [
        "{link: {css: link}, text: {css: description}, image: {css: image}, price: {css: Price, type: number},"
        " g: {css: 'g\\:price'}, name: {css: title}, kind: {css: ':scope', attr: 'g:kind'}}",
        "{link: {xpath: link}, text: {xpath: description}, image: {xpath: image}, price: {xpath: Price, type: number},"
        " g: {xpath: 'g:price'}, name: {xpath: title/text()}, kind: {xpath: '@g:kind'}}",
    ],
    ids=["css", "xpath"],
)
def test_elements_of_xml_are_what_they_are_called(fields: str) -> None:
    each = "{css: item}" if "css" in fields else "{xpath: //item}"
    if "css" in fields:
        fields = fields.replace(", kind: {css: ':scope', attr: 'g:kind'}", "")
    first, second = items(f"each: {each}\nfields: {fields}", PRODUCTS, content_type=XML)
    first.pop("kind", None)
    assert first == {
        "link": "http://x.test/1", "text": "Big & <b>bold</b>&nbsp;", "image": "http://x.test/i.png", "price": 12,
        "g": "12 EUR", "name": "A",
    }  # fmt: skip
    assert (second["link"], second["price"], second["name"]) == ("http://x.test/2", 13, "B")


@pytest.mark.parametrize(
    "content_type", ["application/atom+xml", "text/xml; charset=utf-8", "text/html", "", "text/plain"]
)
def test_a_feed_is_xml_whatever_its_type(content_type: str) -> None:
    spec = """
    each: {css: entry}
    fields:
      title: {css: title}
      link: {css: link, attr: href, type: url}
      note: {xpath: "*[local-name()='note']"}
    """
    css = items(spec.replace("{xpath: \"*[local-name()='note']\"}", "{css: 'm|note'}"), ATOM, content_type=content_type)
    assert [(item["title"], item["link"], item["note"]) for item in css] == [("One é", "https://a.test/1", "n")]


def test_xhtml_inside_of_xml_has_lines() -> None:
    (item,) = items("each: {xpath: //entry}\nfields: {text: {xpath: content}}", ATOM, content_type=XML)
    assert item["text"] == "a b\nc"


def test_html_and_xhtml_stay_html() -> None:
    page = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body><P Class='x'>a<br>b</P></body></html>"
    for content_type in ("text/html", "application/xhtml+xml", ""):
        assert items("fields: {t: {css: p.x}}", page, content_type=content_type) == [{"t": "a\nb"}]


def test_a_prefix_that_no_element_declares_is_a_problem() -> None:
    found = ran("fields: {a: {xpath: '//x:price'}, b: {xpath: //link}}", PRODUCTS, content_type=XML)
    assert any("declares no prefix x:" in problem for problem in found.problems)


def test_broken_xml_costs_itself_only() -> None:
    """Entities of the document are expanded; nothing is fetched, and bombs are not expanded."""
    broken = "<?xml version='1.0'?><a><b>1</b><b>2<c></b><d>x & y</d>"
    assert items("fields: {b: {css: b, all: true}}", broken, content_type=XML)[0]["b"][0] == "1"
    own = "<!DOCTYPE a [<!ENTITY co 'ACME'><!ENTITY f SYSTEM 'file:///etc/passwd'>]><a><b>&co;</b><c>&f;</c></a>"
    (item,) = items("fields: {b: {css: b}, c: {css: c}}", own, content_type=XML)
    assert item["b"] == "ACME"
    assert not item.get("c")
    levels = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 12))
    bomb = f"<!DOCTYPE a [<!ENTITY e0 'ha'>{levels}]><a><b>&e11;</b></a>"
    assert len(str(items("fields: {b: {css: b}}", bomb, content_type=XML))) < 2_000_000
