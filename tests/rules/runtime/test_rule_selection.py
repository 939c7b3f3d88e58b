"""What fields select: elements, attributes, markup, data of JSON, and facts of the page."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.execution.rule_rig import items, ran, value

PAGE = """<html lang=en><head><meta name=description content="D"><meta property="og:Title" content="O">
<script type="application/ld+json">{"@graph": [{"@type": ["Thing", "schema:Product"], "offers": {"price": "9.5"}}]}
</script>
<script type="application/ld+json">{"@type": "https://schema.org/Person", "name": "P"};</script>
<script type="application/ld+json">{broken</script>
<script id=s type=application/json>{"a": {"b": [1, 2]}}</script><script>window.S = {"n": 3}; go();</script></head>
<body><h1>A <b>b</b>c</h1><p class="x y">one<br>two</p><p>three <script>no()</script></p>
<div itemscope><span itemprop="name">N</span><meta itemprop="price" content="7"><a itemprop=url href=/u>x</a></div>
<table><tr><th>k</th><td>v</td></tr><tr><th>l</th><td>w</td></tr></table><pre>  a
  b</pre></body></html>"""


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("h1", "A bc"),
        ("{css: p}", "one\ntwo"),
        ("{css: p, all: true}", ["one\ntwo", "three"]),
        ("{css: p, attr: class}", "x y"),
        ("{css: h1, html: inner}", "A <b>b</b>c"),
        ("{css: 'h1 b', html: outer}", "<b>b</b>"),
        ("{css: pre, trim: false}", "\n  a\n  b\n"),
        ("{css: 'p.x', regex: '(tw)o'}", "tw"),
        ("{regex: 'window\\.S = (\\{.*?\\});', jsonpath: $.n}", 3),
        ("{css: 'script#s', jsonpath: '$.a.b[*]', all: true}", [1, 2]),
        ("{css: 'script#s', jmespath: 'a.b[1]'}", 2),
        ("{xpath: //h1}", "A bc"),
        ("{xpath: '//p/@class'}", "x y"),
        ("{xpath: 'count(//p)', type: integer}", 2),
        ("{xpath: 'string(//td)'}", "v"),
        ("{xpath: //p, all: true}", ["one\ntwo", "three"]),
        ("{xpath: //h1, html: inner}", "A <b>b</b>c"),
        ("{xpath: //h1/b, html: outer}", "<b>b</b>"),
        ("{xpath: //p, attr: class}", "x y"),
        ("{meta: description}", "D"),
        ("{meta: 'OG:title'}", "O"),
        ("{jsonld: Product, jsonpath: $.offers.price, type: number}", 9.5),
        ("{jsonld: Person, jsonpath: $.name}", "P"),
        ("{jsonld: Nobody, jsonpath: $.name}", None),
        ("{itemprop: name}", "N"),
        ("{itemprop: price, type: number}", 7),
        ("{itemprop: url, type: url}", "https://a.test/u"),
        ("{page: url, regex: '/(\\w+)$'}", "page"),
        ("{page: lang}", "en"),
        ("{page: text}", "visible"),
        ("{page: published}", "2026-11-22"),
        ("{page: authors, all: true}", ["Ann Lee", "Bob Ray"]),
        ("{page: section}", None),
        ("{css: tr, fields: {k: th, v: {css: td, required: true}}}", [{"k": "k", "v": "v"}, {"k": "l", "v": "w"}]),
        ("{css: table, all: false, fields: {rows: {css: tr, fields: {k: th}}}}", {"rows": [{"k": "k"}, {"k": "l"}]}),
        ("{xpath: //tr, fields: {k: {xpath: ./th}, v: {xpath: 'td'}}}", [{"k": "k", "v": "v"}, {"k": "l", "v": "w"}]),
        ("{css: h1, fields: {t: {}, b: b}}", [{"t": "A bc", "b": "b"}]),
        ("{css: b, fields: {b: {css: b, exists: true}}}", [{"b": False}]),
    ],
)
def test_what_is_selected(field: str, expected: Any) -> None:
    """One line per kind of selector and what can be taken of it."""
    assert value(field, PAGE) == expected


def test_items_of_a_json_document() -> None:
    """Paths are relative to each object; values keep their JSON types."""
    spec = """
        each: {jsonpath: "$.d[?@.k == 's']"}
        fields: {n: {jsonpath: $.n, required: true}, l: {jsonpath: "$.l[*].c", all: true}, o: {jsonpath: $.o}}
    """
    body = (
        '{"d": [{"k": "s", "n": 1, "l": [{"c": "x"}, {"c": "no"}], "o": {"p": null}}, {"k": "t", "n": 2}, {"k": "s"}]}'
    )
    assert items(spec, body, content_type="application/json") == [{"n": 1, "l": ["x", "no"], "o": {"p": None}}]


def test_a_page_without_each_is_one_item() -> None:
    """And fields come in the order of the rule."""
    (item,) = ran("fields: {z: h1, a: b}", "<h1>x</h1><b>y</b>").items
    assert item == b'{"z":"x","a":"y"}'


@pytest.mark.parametrize("body", ["", "\0", "<", "<!--", "<p>\ufffe\ud7ff", "\x80" * 100, "{", "[]", "<frameset>"])
@pytest.mark.parametrize("field", ["p", "{xpath: //p}", "{jsonpath: $.a}", "{jsonld: A}", "{meta: a}", "{regex: zz}"])
def test_nothing_there_is_no_error(body: str, field: str) -> None:
    """Empty and broken documents have empty fields."""
    assert value(field, body) in (None, "\ufffe\ud7ff", "\ufffe")


def test_encodings_are_those_of_the_page() -> None:
    """A page that is not UTF-8 decode the same."""
    from nephila_rules.runtime.document import Document
    from nephila_rules.runtime.extract import extract

    from tests.rules.execution.rule_rig import rule

    page = Document("<h1>Žluť</h1>".encode("cp1250"), "https://a.test/", "windows-1250")
    both = rule("fields: {a: h1, b: {xpath: //h1}, c: {regex: '<h1>(.*)</h1>'}}").rule
    assert extract(both, page).items == ['{"a":"Žluť","b":"Žluť","c":"Žluť"}'.encode()]
