"""Which links go on, and how: the rule's word on the links of its pages."""

from __future__ import annotations

import json
import struct

import pytest
from nephila.kernel import messages as m
from nephila_rules.execution.to_messages import links_of
from nephila_rules.runtime.document import Document
from nephila_rules.runtime.extract import base_of, extract

from tests.rules.execution.rule_rig import URL, ran, rule

PAGE = """<a href=/1>one</a><a class=next href="/list?page=2">next</a><a href=/2#x>two</a><a href=/2>again</a>
<a href="mailto:a@b">mail</a><a>none</a><area href=/3><img src=/i.png><a href="https://b.test/4">b</a>"""


def hrefs(spec: str, body: str = PAGE, url: str = URL, content_type: str = "text/html") -> list[str] | None:
    """The links that a rule lets go on, without their host where it is the page's."""
    links = ran(spec, body, url, content_type).links
    return None if links is None else [link.href.removeprefix("https://a.test") for link in links]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("fields: {a: p}", None),
        ("outlinks: []", []),
        ("outlinks: a.next", ["/list?page=2"]),
        ("outlinks: {include: ['/\\d$']}", ["/1", "/2", "/3", "https://b.test/4"]),
        ("outlinks: {include: ['/\\d$'], exclude: ['^https://b', '/1']}", ["/2", "/3"]),
        ("outlinks: {css: img}", ["/i.png"]),
        ("outlinks: {css: img, attr: src}", ["/i.png"]),
        ("outlinks: {xpath: '//a[starts-with(@href, \"/\")]/@href'}", ["/1", "/list?page=2", "/2"]),
        ("outlinks: [{css: a.next}, {css: a, include: /2}]", ["/list?page=2", "/2"]),
    ],
)
def test_which_links_go_on(spec: str, expected: list[str] | None) -> None:
    """Left out: all; an empty list: none; else what is selected, resolve, each once."""
    assert hrefs(spec) == expected


def test_links_of_a_json_document() -> None:
    """By path; relative ones are resolved against the document."""
    body = '{"next": "/p?c=2", "items": [{"u": "x"}, {"u": 5}, {"u": "//b.test/y"}]}'
    found = hrefs('outlinks: {jsonpath: "$.items[*].u"}', body, content_type="application/json")
    assert found == ["/dir/x", "https://b.test/y"]


def test_pagination_stays_at_the_pages_depth() -> None:
    """A depth limit does not cut a list short; the other links are not touched by it."""
    found = ran("fields: {a: p}\npagination: {css: a.next}", PAGE)
    assert found.links is None
    assert [(link.href, link.depth) for link in found.next_pages] == [("https://a.test/list?page=2", 0)]


@pytest.mark.parametrize(
    ("url", "body", "expected"),
    [
        ("https://a.test/s?q=x", "<li>", "https://a.test/s?q=x&page=2"),
        ("https://a.test/s?page=2&q=x", "<li>", "https://a.test/s?q=x&page=3"),
        ("https://a.test/s?page=5", "<li>", None),
        ("https://a.test/s?page=2", "<p>", None),
        ("https://a.test/s?page=x", "<li>", "https://a.test/s?page=2"),
        ("https://a.test/s?page=99999999999999", "<li>", "https://a.test/s?page=2"),
    ],
)
def test_a_parameter_counts_while_there_are_items(url: str, body: str, expected: str | None) -> None:
    """Up to its maximum, and not behind a page without items."""
    found = ran("each: li\nfields: {a: {}}\npagination: {param: page, max: 5}", body, url)
    assert [link.href for link in found.next_pages] == ([expected] if expected else [])


def test_hints_become_messages() -> None:
    """A message per depth, pagination first; priorities where some are said; the page's own links stay where the rule
    says nothing of them."""
    spec = """
        outlinks: [{css: "a.next", depth: 3, priority: 9}, {css: a, include: '/[12]$'}]
        pagination: {css: a.next}
    """
    found = ran(spec, PAGE)
    page = m.Page(job="j", url_key=bytes(16), url=URL, depth=4)
    own = m.Outlinks(depth=5)
    pages, near, far = links_of(page, [own], found)
    assert [(one.depth, one.urls, one.priorities) for one in (pages, near, far)] == [
        (4, b"https://a.test/list?page=2", b""),
        (5, b"https://a.test/1https://a.test/2", b""),
        (7, b"https://a.test/list?page=2", b"\x09"),
    ]
    assert struct.unpack("<2I", near.anchor_ends) == (3, 6)
    assert (near.parent_url, near.job, len(near.fingerprints)) == (URL, "j", 32)
    assert links_of(page, [own], ran("fields: {a: p}", PAGE)) == [own]


def test_an_explosion_of_links_is_cut() -> None:
    """And said."""
    found = ran("outlinks: a", "".join(f"<a href=/{n}>" for n in range(10_050)))
    assert found.links is not None
    assert len(found.links) == 10_000
    assert found.problems


def test_a_rule_of_links_alone_has_no_items() -> None:
    """It is about where to go."""
    assert rule("outlinks: a").rule.fields == ()
    assert ran("outlinks: a", PAGE).items == []


@pytest.mark.parametrize(("encoding", "octets"), [("windows-1252", "%F1"), ("utf-8", "%C3%B1")])
def test_a_query_is_in_the_encoding_of_the_page(encoding: str, octets: str) -> None:
    """Of links, of fields that are URLs, and of <base>; the path is in UTF-8."""
    document = Document("<base href='/d?ñ'><a href='/ñ?q=ñ'>x</a>".encode(encoding), URL, encoding)
    found = extract(rule("fields: {u: {css: a, attr: href, type: url}}\noutlinks: a").rule, document)
    assert [link.href for link in found.links or ()] == [f"https://a.test/%C3%B1?q={octets}"]
    assert json.loads(found.items[0])["u"] == f"https://a.test/%C3%B1?q={octets}"
    assert base_of(document) == f"https://a.test/d?{octets}"
