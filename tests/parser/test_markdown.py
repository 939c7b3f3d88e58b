"""Main text as Markdown: structure of the kept lines, and nothing of the others."""

from __future__ import annotations

from nephila.parser.extract import extract
from nephila.parser.markdown import markdown
from selectolax.lexbor import LexborHTMLParser

PAGE = """<body><nav><a href=/m>Menu</a></nav><h2>Title *x*</h2><p>Some <b>bold</b>, <a href="/x y">a link</a> and
<code>a_b</code>.<br>second line<ul><li>one<li>two<ul><li>deep</ul></ul><ol><li>first</ol>
<pre>def f():
    return 1
</pre><table><tr><th>A<th>B<tr><td>1<td>2|3</table><blockquote><p>quoted</blockquote><p># no heading<p>2. no item"""
TEXT = """Title *x*
Some bold, a link and a_b.
second line
one
two
deep
first
def f():
    return 1
A
B
1
2|3
quoted
# no heading
2. no item"""


def test_structure_is_kept() -> None:
    """Headings, emphasis, links, lists, code, tables and quotes; text that looks like markup is escaped."""
    tree = LexborHTMLParser(PAGE)
    assert markdown(tree, TEXT, lambda url: f"http://a.test{url}") == (
        "## Title \\*x\\*\n\nSome **bold**, [a link](http://a.test/x%20y) and `a_b`.\n\nsecond line\n\n"
        "- one\n- two\n  - deep\n1. first\n\n```\ndef f():\n    return 1\n```\n\n"
        "| A | B |\n| --- | --- |\n| 1 | 2\\|3 |\n\n> quoted\n\n\\# no heading\n\n2\\. no item"
    )


def test_only_lines_of_the_main_text() -> None:
    """Each as often as it is there; without any there is nothing."""
    tree = LexborHTMLParser("<body><p>a<p>b<p>a<p>c")
    assert markdown(tree, "a\nb", lambda url: url) == "a\n\nb"
    assert markdown(tree, "", lambda url: url) == ""


def test_links_that_lead_nowhere_are_text() -> None:
    """A link without an address, an empty one, one that its block cuts."""
    tree = LexborHTMLParser('<body><p><a>x</a> <a href="/e"></a><a href=/b>one<p>two</a>')
    assert "](" not in markdown(tree, "x one", lambda url: "")


def test_hostile_trees_end() -> None:
    """Depth costs no recursion."""
    deep = "<div><b>" * 20_000 + "x"
    assert markdown(LexborHTMLParser(deep), "x", lambda url: url).strip("*") in ("x", "")


def test_extract_gives_it_on_demand() -> None:
    """Beside the plain text; never without being asked."""
    body = b"<h1>Head</h1><p>A sentence that is long enough to be a sentence.</p>"
    assert "markdown" not in extract(body, "http://a.test/")
    assert "A sentence that" in extract(body, "http://a.test/", markdown=True)["markdown"]


def test_tables_of_the_main_text_are_tables() -> None:
    """The rows of the text are one line each; the Markdown has their cells."""
    prose = "The spider repairs its web every night, and nobody has counted how many insects end in it. " * 3
    rows = "".join(f"<tr><td>Valley {n}<td>{n} webs" for n in range(4))
    found = extract(f"<main><h1>Webs</h1><p>{prose}</p><table>{rows}</table>".encode(), "", markdown=True)
    assert "Valley 1 | 1 webs\nValley 2 | 2 webs" in found["text"]
    assert "| Valley 1 | 1 webs |\n" in found["markdown"]
