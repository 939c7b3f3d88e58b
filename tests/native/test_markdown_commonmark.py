"""Characters and blocks beside each other are written so that CommonMark reads them as the page has them."""

from __future__ import annotations

import pytest

from .conftest import load

EMPHASIS = {
    "foo<strong>bar:</strong>baz": "foo<strong>bar:</strong>baz",
    "<b>注意：</b>请看。": "<strong>注意：</strong>请看。",
    "<b>注意</b>：请看": "**注意**：请看",
    "请看<b>“注意”</b>。": "请看<strong>“注意”</strong>。",
    "<em>(x)</em>y <em>(x)</em> y": "<em>(x)</em>y *(x)* y",
    "<b>first</b><b>second</b>": "**first**<strong>second</strong>",
    "<b>first</b><i>second</i>": "**first**<em>second</em>",
    "<i><b>both</b></i>, <i><b>a</b> b</i>": "***both***, *<strong>a</strong> b*",
    "<b>a <i>b</i></b>c": "**a *b***c",
    "a<b><code>x</code></b>b, a<b><a href=/l>y</a></b>b": (
        "a<strong>`x`</strong>b, a<strong>[y](http://a.test/l)</strong>b"
    ),
    "<del>old.</del>new, <s>old</s> new, ~<s>5</s>": "<del>old.</del>new, ~~old~~ new, ~<del>5</del>",
}


def markdown_of(html: str, links: str = "inline") -> str:
    """Markdown of a page that is main text as a whole."""
    core = load("rust")
    text, structure = core.structure_by(f"<body>{html}".encode(), "utf-8", [])
    written: bytes = core.markdown(structure, text, "http://a.test/", links)
    return written.decode()


@pytest.mark.parametrize("html", EMPHASIS)
def test_emphasis_is_flanked(html: str) -> None:
    """Asterisks stand where they open or close (CommonMark 6.2); elsewhere the mark is HTML."""
    assert markdown_of(f"<p>{html}") == EMPHASIS[html]


def test_link_behind_an_exclamation_mark_is_no_picture() -> None:
    """The mark is a character reference; elsewhere it is itself."""
    assert markdown_of("<p>New!<a href=/x>it</a> wow!<b>bold</b>") == "New&#33;[it](http://a.test/x) wow!**bold**"


def test_brackets_in_links_and_texts_of_pictures_are_text() -> None:
    """Beside a picture in the link, too."""
    html = "<p><a href=/x>a]b<img src=/i alt='c]d'></a> e]"
    assert markdown_of(html) == "[a\\]b![c\\]d](http://a.test/i)](http://a.test/x) e]"


@pytest.mark.parametrize(("title", "written"), [("F #", "F \\#"), ("C#", "C#"), ("#", "\\#"), ("a ##", "a \\##")])
def test_number_signs_at_the_end_of_a_heading_stay(title: str, written: str) -> None:
    """They do not close it (CommonMark 4.2)."""
    assert markdown_of(f"<h2>{title}</h2><p>x") == f"## {written}\n\nx"


def test_bold_heading_is_a_heading() -> None:
    """Bold text in a part of it stays."""
    assert markdown_of("<h2><b>All</b></h2><h3>One <b>word</b></h3><p>x") == "## All\n\n### One **word**\n\nx"


def test_markup_across_elements_is_text() -> None:
    """A character reference, a tag, code beside code."""
    html = "<p>&amp;<span>amp;</span> &lt;<span>b></span> <code>a</code><code>b</code> 5~ ~5"
    assert markdown_of(html) == "\\&amp; \\<b> `a`<code>b</code> 5\\~ ~5"


def test_bars_in_cells() -> None:
    """Each has a backslash of its own: those before bars are taken away before text and code are read."""
    rows = "<tr><td>p\\|q<td><code>a|b</code><tr><td>p|q<td><code>a\\|b</code>"
    written = markdown_of(f"<p>x<table><tr><th>A<th>B{rows}</table>")
    assert written.split("\n")[-2:] == ["| p\\\\\\|q | `a\\|b` |", "| p\\|q | `a\\\\|b` |"]


def test_table_is_written_as_it_is_shown() -> None:
    """The foot below, the head above, whatever comes first in the page; code in a cell line by line."""
    head = "<thead><tr><td>A<td>B</thead>"
    html = f"<p>x<table><tfoot><tr><td>sum<td>3</tfoot>{head}<tbody><tr><td>a<td><pre>1\n2</pre></table>"
    assert markdown_of(html).split("\n")[2:] == ["| A | B |", "| --- | --- |", "| a | `1`<br>`2` |", "| sum | 3 |"]


def test_table_that_lays_out_code_is_no_table() -> None:
    """One row with line numbers beside the code."""
    html = "<p>x<table><tr><td class=gutter><pre>1\n2</pre><td><pre>a\nb</pre></table>"
    assert markdown_of(html) == "x\n\n```\na\nb\n```"


def test_rule_between_blocks() -> None:
    """Once, and none at the ends; at the start of an item it is no second item."""
    assert markdown_of("<hr><p>a<hr><hr><p>b<hr>") == "a\n\n---\n\nb"
    assert markdown_of("<p>a<ul><li><hr><p>b</ul>") == "a\n\n- ___\n\n  b"


def test_list_directly_in_a_list_belongs_to_the_item_before() -> None:
    """As browsers show it; without an item before it stands for itself."""
    assert markdown_of("<ul><li>a<ul><li>b</ul></ul><ul><ul><li>c</ul></ul>".replace("a<ul>", "a</li><ul>")) == (
        "- a\n  - b\n\n* c"
    )


def test_lists_side_by_side_are_two() -> None:
    """They take the two markers by turns; one that does not begin with 1 does not end a paragraph."""
    assert markdown_of("<ul><li>a</ul><ul><li>b</ul><ol><li>c</ol><ol><li>d</ol>") == "- a\n\n* b\n\n1. c\n\n1) d"
    assert markdown_of("<ul><li>a<ol start=5><li>b</ol></ul>") == "- a\n\n  5. b"


def test_heading_in_an_item() -> None:
    """With the blocks behind it."""
    assert markdown_of("<ol><li><h3>H</h3>text<li>b</ol>") == "1. ### H\n\n   text\n2. b"


def test_box_in_a_numbered_item() -> None:
    """The blocks behind it belong to the item."""
    assert markdown_of("<ol><li><input type=checkbox>a<p>b</ol>") == "1. a\n\n   b"
