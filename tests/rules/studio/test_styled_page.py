"""The styled page, style sheets and SVG as they are written: nothing acts, and no address is left."""

# ruff: noqa: E501

from __future__ import annotations

import random
import re

import pytest
from nephila_rules.runtime.document import Document
from nephila_rules.studio.numbering import numbers
from nephila_rules.studio.styled.css import rewritten
from nephila_rules.studio.styled.page import write_page
from nephila_rules.studio.styled.pieces import MAX_FILES, NamedFile, srcset_of
from nephila_rules.studio.styled.svg import cleaned_svg

from tests.console.hostile_pages import SHEETS, SPELLINGS, pages

BASE = "http://a.test/q/"


def sheet(text: str) -> str:
    """A rewritten style sheet, each file as its kind and URL in brackets."""
    return "".join(part if isinstance(part, str) else f"[{part.kind} {part.url}]" for part in rewritten(text, BASE))


def page(text: str) -> str:
    document = Document(text.encode("utf-8", "replace"), BASE)
    written = write_page(document, numbers(document), {}, {}).pieces.pieces()
    return written.joined(lambda file: f"[{file.kind} {file.url}]")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("@import 'x.css' screen;", '@import url("[style http://a.test/q/x.css]") screen;'),
        ("@im\\70ort url(x.css);", '@im\\70ort url("[style http://a.test/q/x.css]");'),
        ("a{b:u\\72l( '/c.png' )}", 'a{b:u\\72l( "[media http://a.test/c.png]" )}'),
        ("a{b:URL(c.svg#d)}", 'a{b:url("[media http://a.test/q/c.svg]#d")}'),
        ("a{b:image-set('c.png' 1x)}", 'a{b:image-set(url("[media http://a.test/q/c.png]") 1x)}'),
        ("a{b:url(data:image/gif;base64,AA)}", 'a{b:url("[media data:image/gif;base64,AA]")}'),
        ("a{fill:url(#b)}", 'a{fill:url("#b")}'),
        ("a{b:url(javascript:x)} c{d:e}", 'a{b:url("#")} c{d:e}'),
        ("a{b:url(x'y)z}", 'a{b:url("#")z}'),
        ("a{content:'</style><img src=x>'}", "a{content:'\\3c /style>\\3c img src=x>'}"),
        ("@media (width <5px){a{b:'url(c.png)'}}", "@media (width <5px){a{b:'url(c.png)'}}"),
    ],
)
def test_addresses_of_a_style_sheet_are_taken_out(text, written):
    """In each spelling; what is none stays as it is."""
    assert sheet(text) == written


@pytest.mark.parametrize("text", [*SHEETS, *(f"a{{b:{one}}}" for one in SPELLINGS)])
def test_no_spelling_leaves_an_address_to_a_browser_or_begins_a_tag(text):
    """HOST is named in strings and comments that no browser takes for an address, at most."""
    written = sheet(text.replace("HOST", "foreign.test"))
    outside = re.sub(r"\[(?:media|style) [^\]]*\]", "", written)
    assert not re.search(r"url\(\s*[\"']?(?!#|[\"'])\s*[^\s\"')]*foreign", outside, re.IGNORECASE)
    assert not re.search(r"<[A-Za-z/!?]", outside)


def test_any_text_is_a_style_sheet():
    """Random pieces in random order: no error and no tag."""
    chance = random.Random(7)
    signs = [
        "url(",
        "@import",
        "'",
        '"',
        "\\",
        "/*",
        "*/",
        "(",
        ")",
        "{",
        "}",
        "<",
        "img",
        "\n",
        "\0",
        "é",
        "-->",
        "<!--",
        ";",
        " ",
        "\\75",
        "x",
    ]
    for _ in range(3000):
        text = "".join(chance.choice(signs) for _ in range(chance.randrange(30)))
        written = re.sub(r"\[(?:media|style) [^\]]*\]", "", sheet(text))
        assert not re.search(r"<[A-Za-z/!?]", written), text


def test_a_large_style_sheet_takes_linear_time():
    """Names, brackets and quotes without end: a pattern with backtracking would not return."""
    for text in ("a" * 300_000 + "(", "(" * 300_000, "'" * 300_001, "\\" * 300_001, "url(" * 75_000, "-" * 300_000):
        assert sheet(text) is not None


def test_nothing_that_acts_is_written():
    """412 hostile pages: no element, no attribute and no address beyond the lists."""
    for text in pages("foreign.test"):
        written = page(text)
        outside = re.sub(r"\[(?:media|style) [^\]]*\]", "", written)
        tags = re.findall(r"<([a-zA-Z][^\s/>]*)([^>]*)>", outside)
        names = {name.lower() for name, _ in tags}
        assert not names & {"script", "iframe", "object", "embed", "base", "meta", "template", "frame", "applet"}, text
        for _, attributes in tags:
            bare = re.sub(r'"[^"]*"', "", attributes)
            assert not re.search(r"\son\w+|\s(?:action|formaction|ping|srcdoc|target|http-equiv)\b", bare), text


def test_a_page_keeps_its_look():
    text = (
        "<!doctype html><html class=dark><head><link rel=stylesheet href=a.css media=screen><title>x</title>"
        "<link rel=preload as=style href=b.css onload=x()><style>p{color:red}</style></head><body style='background:url(c.png)'>"
        "<my-card data-kind=big><img data-src=d.png src=data:image/gif,x alt=D><a href=/e target=_top onclick=x()>E</a></my-card>"
        "<svg viewBox='0 0 1 1'><path d='M0 0' onclick=x() /><script>x()</script></svg><input type=submit value=Go><form action=/f></form>"
    )
    written = page(text)
    assert written.startswith("<!doctype html><html ")
    for part in (
        '<link rel="stylesheet" href="[style http://a.test/q/a.css]" media="screen">',
        '<link rel="stylesheet" href="[style http://a.test/q/b.css]">',
        "<style>p{color:red}</style>",
        'style="background:url(&quot;[media http://a.test/q/c.png]&quot;)"',
        'data-kind="big"',
        'src="[media http://a.test/q/d.png]" loading="lazy"',
        'href="#"',
        'd="M0 0"',
        'type="submit"',
    ):
        assert part in written
    for part in ("onclick", "onload", "action", "target", "script", "/e"):
        assert part not in written


def test_files_and_size_of_a_page_are_bounded():
    many = "".join(f"<img src={number}.png>" for number in range(3 * MAX_FILES))
    document = Document(many.encode(), BASE)
    assert len(write_page(document, numbers(document), {}, {}).pieces.pieces().files) == MAX_FILES
    deep = Document(("<div>" * 5_000 + "x").encode(), BASE)
    assert sum(map(len, write_page(deep, numbers(deep), {}, {}).pieces.pieces().texts)) < 20_000
    long = Document(("<p>some text" * 90_000).encode(), BASE)
    assert not write_page(long, numbers(long), {}, {}).whole


def test_a_srcset_is_read_candidate_by_candidate():
    assert srcset_of("a.png 1x, b,c.png 2x,d.png") == [("a.png", "1x"), ("b,c.png", "2x"), ("d.png", "")]
    assert srcset_of("data:image/gif;base64,AA 1x, b.png 2x") == [("data:image/gif;base64,AA", "1x"), ("b.png", "2x")]


def test_an_svg_file_draws_and_does_nothing_else():
    text = (
        "<?xml version='1.0'?><?xml-stylesheet href='//f.test/x'?><!DOCTYPE svg [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]>"
        "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' onload='x()' viewBox='0 0 1 1'>"
        "<style>@import '//f.test/i'; rect{fill:url(#g)}</style><script>x()</script><a xlink:href='javascript:x()'><rect/></a>"
        "<use xlink:href='#g'/><use href='//f.test/u#g'/><image href='//f.test/i'/><foreignObject><p/></foreignObject>"
        "<rect fill='url(//f.test/g)' onclick='x()' width='3'/><text>&b; &lt;x&gt;</text></svg>"
    )
    written = cleaned_svg(text.encode())
    assert written is not None
    for part in ("script", "onload", "onclick", "javascript", "f.test", "foreignObject", "<image", "ENTITY", "aaaa"):
        assert part not in written
    for part in ('viewBox="0 0 1 1"', '<use href="#g">', 'width="3"', "&lt;x&gt;", "fill:url(&quot;#g&quot;)"):
        assert part in written
    assert cleaned_svg(b"<html><svg/></html>") is None
    assert cleaned_svg(b"") is None
    assert cleaned_svg(b"\x89PNG") is None


def test_a_file_is_http_https_or_data():
    files = [
        part
        for part in rewritten("a{b:url(ftp://f.test/a) url(file:///etc/passwd) url(https://f.test/a)}", BASE)
        if isinstance(part, NamedFile)
    ]
    assert files == [NamedFile("media", "https://f.test/a")]
