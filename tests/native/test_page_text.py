"""Title, meta and the visible text of a page as lines."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from nephila import native
from nephila.native import PassOptions
from nephila.parser.page.text import text_hash

from .conftest import check_page, core_only, lines_of

HEADING, ITEM, CELL, CHROME, PRE, MAIN, COMMENT = (1 << bit for bit in range(7))


def run(core: ModuleType, html: str, **limits: int) -> Any:
    """A checked page pass."""
    page = core.page_pass(html.encode(), "http://a.test/", "utf-8", PassOptions(**limits))
    check_page(page)
    return page


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a\n  b</p> <p>c", "a b\nc"),
        ("a<br>b<br/><br>c</br>d", "a\nb\nc\nd"),
        ("a<b> b </b> c<i>d</i>", "a b cd"),
        ("<div>a<div>b</div>c</div>d", "a\nb\nc\nd"),
        ("<ul><li>a<li>b<ul><li>c</ul>d</ul>", "a\nb\nc\nd"),
        ("<table><tr><td>a<td>b<tr><th>c</table>d", "a\nb\nc\nd"),
        ("a<script>x</script>b<style>y</style><template>z</template><textarea>t</textarea>", "ab"),
        ("a<select><option>o</select><svg><text>s</text></svg><video>v</video>b", "ab"),
        ("<title>t</title><img alt=no>x", "x"),
        ("<div>a<template shadowrootmode=open><p>b<b>c</b></template>d</div>e", "a\nbc\nd\ne"),
        ("<my-x><template shadowrootmode=open><style>x</style>a</template></my-x><template>b</template>c", "ac"),
        ("a<iframe srcdoc='<title>t</title>b<p>c &amp;amp; d</p></div>'>x</iframe>e<div>f</div>", "a\nb\nc & d\ne\nf"),
        ("&lt;b&gt; &amp &notit; &#x41;&#66 &nbsp;&unknown; & &#0;&#128;", "<b> & ¬it; AB &unknown; & \ufffd€"),
        ("a&#32;&#10; b&Tab;c", "a b c"),
        ("a\0b", "ab"),
        ("1 < 2 <3 </ x>y<", "1 < 2 <3 y<"),
        ("<pre>\n a\n\n  b  c \n</pre>d", " a\n  b  c\nd"),
        ("<p>a <code style='white-space: pre'>\n b\n   c</code>d", "a\n b\n   c\nd"),
        ("<p>a <code style='white-space:pre-wrap'> b  c </code>d", "a b c d"),
        ("<p>a <code class='hl block lean'>b  c</code> d", "a\nb  c\nd"),
        ("<xmp><b>&amp;</xmp>x<plaintext><i>", "<b>&amp;\nx\n<i>"),
        ("<svg><desc>no</desc></svg><math><mi>x</mi><annotation>no</annotation></math>", "x"),
        ("<frameset><frame></frameset>no<noframes>no</noframes>", ""),
        ("<p>a<custom-el>b</custom-el>c", "abc"),
        ("\u3000a\u00a0b\x0bc", "\u3000a b\x0bc"),
        ("", ""),
    ],
)
def test_text(core: ModuleType, html: str, text: str) -> None:
    """Text is what a reader sees: one line per block, whitespace collapsed, references decoded."""
    assert run(core, html).text.decode() == text


@pytest.mark.parametrize("html", ["<p>a<p>b", "", "<img src=x>", "<nav>menu</nav>" + "<p>A long sentence.</p>" * 9])
def test_the_hash_is_of_the_main_text_or_all_text(core: ModuleType, html: str) -> None:
    """`Record.text_hash`, as the parser makes it for a document."""
    found = run(core, html)
    assert found.text_hash == text_hash(found.main_text or found.text)


def test_lines_carry_their_context(core: ModuleType) -> None:
    """Each line knows its block, where it stands and how much of it is link."""
    html = (
        "<nav><a href=1>home</a> <a href=2>news</a></nav><main><h2>T</h2><p>see <a href=3>this page</a> now</p>"
        "<ul><li>i</ul><table><td>c</table><pre>p</pre></main><div class='Comments-list'><p>me</div>z"
    )
    rows = [(line.text, line.link_bytes, line.tag, line.flags) for line in lines_of(run(core, html))]
    assert rows == [
        ("home news", 9, "nav", CHROME),
        ("T", 0, "h2", HEADING | MAIN),
        ("see this page now", 9, "p", MAIN),
        ("i", 0, "li", ITEM | MAIN),
        ("c", 0, "td", CELL | MAIN),
        ("p", 0, "pre", PRE | MAIN),
        ("me", 0, "p", COMMENT),
        ("z", 0, "", 0),
    ]


def test_text_limit(core: ModuleType) -> None:
    """Text stops at its limit, at a character, and links go on."""
    page = run(core, "<p>aé bé</p><p>c</p><a href=/x>y</a>", max_text_bytes=6)
    assert (page.text.decode(), page.link_count) == ("aé b", 1)
    for limit in range(12):
        assert len(run(core, "aé <b>bé</b><p>c <i>d", max_text_bytes=limit).text) <= limit


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> A &amp; B\n C </title><title>2</title>", "A & B C"),
        ("<svg><title>s</title></svg><p><title>t</title>", "t"),
        ("<template><title>no</title></template><title>t", "t"),
        ("<title></title><title>2</title>", ""),
        ("<title><b>x</b></title>", "<b>x</b>"),
        ("<title>x</titlex></title>", "x</titlex>"),
        ("<frameset><title>no</title>", ""),
    ],
)
def test_title(core: ModuleType, html: str, title: str) -> None:
    """The first HTML title of the tree is the title."""
    assert run(core, html).title == title


def test_head(core: ModuleType) -> None:
    """Language, canonical, robots, description, metas and refresh are read as they stand in the head."""
    page = run(
        core,
        "<html lang=' de-CH '><html lang=x><base href=/b/><link rel='x CANONICAL' href=c?utm_x=1#f>"
        "<meta name=ROBOTS content=NoIndex><meta name=nephila content='nofollow'>"
        "<meta name=description content=' d &amp; e '><meta name=description content=no>"
        "<meta property=og:title content=O><meta name=Twitter:card content=s><meta name=author content=Me>"
        "<meta name=viewport content=w><meta property=og:x><meta http-equiv=refresh content='3;URL=\"/r\"'>",
    )
    assert (page.lang, page.canonical) == ("de-CH", "http://a.test/b/c?utm_x=1")
    assert (page.robots, page.description) == ("noindex,nofollow", "d & e")
    assert page.meta == [("og:title", "O"), ("twitter:card", "s"), ("author", "Me")]
    assert page.refresh == "http://a.test/r"


def test_robots_directives_under_the_agents_name(core: ModuleType) -> None:
    """Those for all and those for this crawler, whatever it is called; not those for others."""
    names = {"robots": "a", "ExampleBot": "B", "nephila": "c", "x": "d"}
    html = "".join(f"<meta name={name} content={content}>" for name, content in names.items()).encode()
    assert core.page_pass(html, "http://a.test/", "", PassOptions(agent="examplebot")).robots == "a,b"
    assert core.page_pass(html, "http://a.test/", "").robots == "a,c"


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=x", "x"), ("5, x", "x"), ("5 x", "x"), (".5;url = 'x y'z", "x%20y"), ("0;URL=\"x", "x"),
        ("0; urlx", "urlx"),
        ("5", ""), (";x", ""), ("x;y", ""), ("5x", ""), ("5;", ""), ("+1;x", ""),
    ],
)  # fmt: skip
def test_refresh(core: ModuleType, content: str, target: str) -> None:
    """The target of a refresh is found by the standard's steps."""
    content = content.replace('"', "&quot;")
    page = run(core, f'<meta http-equiv=refresh content="{content}">')
    assert page.refresh.removeprefix("http://a.test/") == target


def test_meta_is_bounded(core: ModuleType) -> None:
    """At most 100 metas come back, each value cut at 8 KiB."""
    page = run(core, "".join(f"<meta name=og:{n} content={'é' * 5000}>" for n in range(120)))
    assert len(page.meta) == 100
    assert len(page.meta[0][1].encode()) == 8192


def test_tag_ids_agree(core: ModuleType) -> None:
    """Both number the elements by the rows of tags.txt."""
    rows = (Path(native.__file__).parent / "tags.txt").read_text("utf-8").splitlines()
    assert list(core.TAGS) == ["", *(row.split()[0] for row in rows if row and not row.startswith("#"))]


NO_BOUND = 2**32 - 1


def unbounded(core: ModuleType, html: str) -> bool:
    """Whether a tree of a page may take a time that grows with its square."""
    return bool(
        core.page_pass(html.encode(), "http://a.test/", "utf-8", PassOptions(main_text=False)).depth == NO_BOUND
    )


@core_only
@pytest.mark.parametrize("tag", ["<div{}>", "</p{}>", "<a{}>", "<div{}", "<div{}='x", "<x{}/>", "<div a='>'{}>"])
def test_more_than_a_thousand_attributes(core: ModuleType, tag: str) -> None:
    """They are told of one tag, closed or not; the same in many tags are nothing."""
    count = 999 if "a=" in tag else 1000
    for more in (0, 1):
        html = tag.format("".join(f" a{number}" for number in range(count + more)))
        assert unbounded(core, html) == bool(more)
    assert not unbounded(core, "<p a b c></p>" * 1000)
    assert not unbounded(core, "<!-- <p" + " a" * 2000 + "> -->")


@core_only
@pytest.mark.parametrize("tag", ["html", "body", "HTML"])
def test_attributes_of_the_root_are_gathered(core: ModuleType, tag: str) -> None:
    """A tree puts the attributes of all <html> and <body> tags into one element of each name."""
    assert unbounded(core, "".join(f"<{tag} a{number}>" for number in range(1001)))
    assert not unbounded(core, "".join(f"<{tag} a{number}>" for number in range(900)) + f"<{tag}>" * 5000)


@core_only
@pytest.mark.parametrize("tag", ["<div></x>", "<b><svg></y>", "<x>"])
def test_no_bound_beyond_the_stack(core: ModuleType, tag: str) -> None:
    """Elements beyond the stack's depth are told, whatever end tags stand between them."""
    assert unbounded(core, tag * 600)
    assert not unbounded(core, "<div><i>x</i></div>" * 5_000)


@core_only
@pytest.mark.parametrize(
    "unit",
    [
        "<p><b id={}></p>",
        "<p><b id={}></p><object></b></object>",
        "<p><b id={}><table></b></table></p>",
        "<b id={}>" + "<div>" * 9 + "</b>" + "</div>" * 9,
        "<p><b id={}></p><table><td></b></table>",
    ],
)
def test_formatting_elements_that_stay_open(core: ModuleType, unit: str) -> None:
    """A tree opens them anew in every block: end tags that do not reach them do not count."""
    assert unbounded(core, "".join(unit.format(number) for number in range(40)))
    assert not unbounded(core, "<p><b><i>x</i></b></p><table><td><b>x</b></td></table>" * 500)
    assert not unbounded(core, "<p><font><b>x</p><td>" * 3)


@core_only
@pytest.mark.parametrize(("start", "unit"), [("", "x <td id=1>"), ("<table>", "x<tr>"), ("<p>", "x</body>")])
def test_text_that_is_appended_over_and_over(core: ModuleType, start: str, unit: str) -> None:
    """Each piece may be appended to all text before it, which is copied."""
    assert unbounded(core, start + unit * 15_000)
    assert not unbounded(core, "<p>x <b>y</b> z<br>" * 20_000)
    assert not unbounded(core, "<table>" + "<tr><td>some words</td> <td>x</td></tr>\n" * 5_000)
