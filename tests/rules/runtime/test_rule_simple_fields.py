"""Simple text fields (elements by CSS): the fast path gives what the general path gives."""

from __future__ import annotations

import random

import pytest

from tests.rules.execution.rule_rig import items, ran

PIECES = (
    *("<p>", "</p>", "<b>", "</b>", "<br>", "<div>", "</div>", "<pre>", "</pre>", "<script>var a = '<p>';</script>"),
    *("<!-- c -->", "<li>", "one  two", " three\n four ", "\t", "é\u00a0ü", "&nbsp;", "&lt;p&gt;", "x", " ", "</li>"),
)
SELECTORS = ("p", "b", "div p", "li, p", "pre", "div > b", ".none")
LONG = "replace: {pattern: 'never in there', with: ''}"


def page(seed: int) -> str:
    """Some markup, well-formed or not."""
    chance = random.Random(seed)
    return "<body>" + "".join(chance.choice(PIECES) for _ in range(chance.randrange(5, 80)))


@pytest.mark.parametrize("more", ["", "all: true", "join: ' | '", "required: true", "default: none"])
def test_the_short_way_gives_what_the_long_one_gives(more: str) -> None:
    """Texts of elements are the same with a replacement that never happens, which a plain field has not."""
    more = f", {more}" if more else ""
    for seed in range(60):
        body = page(seed)
        for selector in SELECTORS:
            short = items(f"fields: {{f: {{css: '{selector}'{more}}}}}", body)
            assert short == items(f"fields: {{f: {{css: '{selector}', {LONG}{more}}}}}", body), (seed, selector)


def test_the_short_way_within_a_group() -> None:
    """Inside a group the element itself is not among those below it."""
    rows = "{css: div, fields: {f: {css: 'div, b'EXTRA}}}"
    for seed in range(60):
        short = items(f"fields: {{g: {rows.replace('EXTRA', '')}}}", page(seed))
        assert short == items(f"fields: {{g: {rows.replace('EXTRA', ', ' + LONG)}}}", page(seed)), seed


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>one <b>two</b> three", "one two three"),
        ("<p>one<!-- no --> <i>two</i>", "one two"),
        ("<p>one<br>two", "one\ntwo"),
        ("<div id=f>one<script>no</script><span>two</span></div>", "onetwo"),
        ("<p>a &amp; <span>b</span></p>tail", "a & b"),
    ],
)
def test_both_trees_have_the_same_text(body: str, text: str) -> None:
    """CSS and XPath: markup within a line is none, a break begins a line, comments and scripts are no text."""
    assert items("fields: {f: {css: 'p, #f'}}", body) == [{"f": text}]
    assert items("fields: {f: {xpath: '//p | //*[@id=\"f\"]'}}", body) == [{"f": text}]


def test_long_texts_are_the_json_that_short_ones_are() -> None:
    """Whatever is in them: quotes, backslashes, controls, letters of any script. Half a surrogate pair is U+FFFD."""
    line = 'one "two" \\ \x7f é 蜘蛛 \U0001f577 '
    long = (line * 200).strip()
    assert items("fields: {f: p, g: {css: p, html: inner, trim: false}}", f"<p>{long}</p>") == [
        {"f": long, "g": long.replace("&", "&amp;")}
    ]
    script = f'<script type="application/ld+json">{{"a": "{"x" * 3000}", "b": "\\ud800"}}</script>'
    assert ran("fields: {a: {jsonld: '*', jsonpath: $.a}, b: {jsonld: '*', jsonpath: $.b}}", script).items == [
        b'{"a":"' + b"x" * 3000 + b'","b":"\xef\xbf\xbd"}'
    ]


def test_deep_markup_within_a_line_is_none() -> None:
    """However deep inline elements are nested, a break in the innermost begins a line and none else does."""
    for depth in (1, 19, 30, 100):
        spans, ends = "<span>" * depth, "</span>" * depth
        assert items("fields: {f: p}", f"<p>a {spans}b &amp; c{ends} d</p>") == [{"f": "a b & c d"}]
        assert items("fields: {f: p}", f"<p>a {spans}b<br>c{ends} d</p>") == [{"f": "a b\nc d"}]


@pytest.mark.parametrize(
    "more", ["", "all: true", "join: ' | '", "required: true", "default: '7'", "type: url", "type: integer, all: true"]
)
def test_the_short_way_of_attributes_gives_what_the_long_one_gives(more: str) -> None:
    """Of any type, one or all, empty, without a value or not there, in the document and within a group."""
    more = f", {more}" if more else ""
    pieces = (*("<a href=x>", "<a href>", "<a>", "<a href=' 7 '>", "<b href='a b'>", "<a HREF=/y?q=1&amp;r>"), *PIECES)
    for seed in range(60):
        chance = random.Random(seed)
        body = "<body>" + "".join(chance.choice(pieces) for _ in range(chance.randrange(5, 60)))
        for selector in ("a", "b, a", "div a", ".none"):
            short = f"{{css: '{selector}', attr: href{more}}}"
            long = f"{{css: '{selector}', attr: href, {LONG}{more}}}"
            for spec in ("fields: {f: FIELD}", "fields: {g: {css: 'div, a', fields: {f: FIELD}}}"):
                one, other = (ran(spec.replace("FIELD", field), body) for field in (short, long))
                assert one == other, (seed, selector, spec)
