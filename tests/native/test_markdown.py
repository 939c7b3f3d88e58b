"""Main text as Markdown, of the core and of the fallback: structure of the kept lines, and nothing of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import ModuleType

import pytest

from .conftest import core_only, load

Written = Callable[[str, str], str]

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


def collapsed(line: str) -> str:
    """Without the bars between cells."""
    return " ".join(line.replace("|", " ").split())


def of_lines(core: ModuleType, html: bytes, wanted: str, encoding: str = "utf-8", **options: str) -> str:
    """Markdown of a page whose main text are these lines, each as often as it is named."""
    text, _ = core.structure_by(html, encoding, [])
    left = Counter(collapsed(line) for line in wanted.split("\n"))
    numbers = []
    for number, line in enumerate(text.decode().split("\n")):
        if left[collapsed(line)] > 0:
            left[collapsed(line)] -= 1
            numbers.append(number)
    text, structure = core.structure_by(html, encoding, numbers or [1 << 30])
    found: bytes = core.markdown(structure, text, "http://a.test/", **options)
    return found.decode()


@pytest.fixture
def written() -> Written:
    """Markdown of the lines named."""
    core = load("rust")
    return lambda html, lines: of_lines(core, html.encode(), lines)


def test_structure_is_kept(written: Written) -> None:
    """Headings, emphasis, links, lists, code, tables and quotes; text that looks like markup is escaped."""
    assert written(PAGE, TEXT) == (
        "## Title \\*x\\*\n\nSome **bold**, [a link](http://a.test/x%20y) and `a_b`.  \nsecond line\n\n"
        "- one\n- two\n  - deep\n\n1. first\n\n```\ndef f():\n    return 1\n```\n\n"
        "| A | B |\n| --- | --- |\n| 1 | 2\\|3 |\n\n> quoted\n\n\\# no heading\n\n2\\. no item"
    )


def test_only_lines_of_the_main_text(written: Written) -> None:
    """Those that are named by their numbers."""
    assert written("<body><p>a<p>b<p>a<p>c", "a\nb") == "a\n\nb"


def test_links_that_lead_nowhere_are_text(written: Written) -> None:
    """A link without an address, an empty one, one of another scheme, a name."""
    html = "<p><a href=javascript:x>x</a> <a href='/e'></a><a href=mailto:a@b.test>y</a> <a name=n>z</a>"
    assert written(html, "x y z") == "x y z"


def test_links_below_an_address_lead_nowhere() -> None:
    """Those of a document whose own address is not known."""
    html = b"<p><a href=x>x</a> <a href=http://b.test/>y</a>"
    assert of_lines(load("rust"), html, "x y", nowhere="http://a.test/") == "x [y](http://b.test/)"


def test_hostile_trees_end(written: Written) -> None:
    """Depth costs no recursion."""
    assert written("<div><b>" * 5_000 + "x", "x").strip("*") in ("x", "")


def test_code_has_its_language_and_white_space(written: Written) -> None:
    """Of whatever highlighter; line numbers are none of it, and fences are longer than those within."""
    sphinx = '<div class="highlight-python3 notranslate"><div><pre><span></span><span>if</span> x:\n\n    y\n'
    assert written(sphinx, "if x:") == "```python3\nif x:\n\n    y\n```"
    prism = '<pre class="line-numbers"><code class="language-c++">int x;</code></pre>'
    assert written(prism, "int x;") == "```c++\nint x;\n```"
    rustdoc = '<pre class="rust rust-example"><code>fn f() {}<br>fn g() {}</code></pre>'
    assert written(rustdoc, "fn f() {}") == "```rust\nfn f() {}\nfn g() {}\n```"
    numbers = '<table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre><td><pre>a\nb</pre></table>'
    assert written(numbers, "a\nb") == "```\na\nb\n```"
    assert written("<pre>a\n````\nb", "a") == "`````\na\n````\nb\n`````"


def test_code_that_keeps_its_lines_is_a_block(written: Written) -> None:
    """Without a <pre>: by its own white-space, as the classes of Verso say; numbers and buttons are none of it."""
    styled = "<div><code class=language-js style='color: red; white-space: pre'>\nif (x) {\n  y\n}</code></div>"
    assert written(f"<p>a{styled}<p>b", "a\nif (x) {\nb") == "a\n\n```js\nif (x) {\n  y\n}\n```\n\nb"
    inline = "<p>a <code style='white-space: pre-wrap'>x  y</code> b"
    assert written(inline, "a x y b") == "a `x y` b"
    hover = "<span class='hover-info messages'><code>m : Nat</code></span>"
    verso = f"<code class='hl lean block'>{hover}def m  := <a href=/x>Nat</a></code>"
    assert written(verso, "def m  := Nat") == "```\ndef m  := Nat\n```"
    rouge = (
        "<code><table><tr><td class='rouge-gutter gl'><pre class=lineno>1\n2</pre><td><pre>a\nb</pre></table></code>"
    )
    assert written(rouge, "a\nb") == "```\na\nb\n```"
    assert written("<pre><button>Run</button>f()\ng()</pre>", "f()") == "```\nf()\ng()\n```"


def test_code_and_tables_between_main_text_are_main_text(written: Written) -> None:
    """The main text may lack them."""
    html = "<p>before<pre>a = 1</pre><table><tr><th>k<th>v<tr><td>1<td>2</table><p>behind<footer><pre>no</pre></footer>"
    assert written(html, "before\nbehind") == (
        "before\n\n```\na = 1\n```\n\n| k | v |\n| --- | --- |\n| 1 | 2 |\n\nbehind"
    )


def test_lists_keep_their_nesting(written: Written) -> None:
    """Numbers, paragraphs, code and quotes within items; descriptions are lists of their terms."""
    html = (
        "<ol start=9><li>nine<li><p>ten<p>more<pre>code</pre><ul><li>a<ul><li>b</ul></ul></ol>"
        "<dl><dt>term<dd>what it is<dd>or is not</dl><blockquote><p>q<ul><li>r</ul></blockquote>"
    )
    text = "nine\nten\nmore\ncode\na\nb\nterm\nwhat it is\nor is not\nq\nr"
    assert written(html, text) == (
        "9. nine\n10. ten\n\n    more\n\n    ```\n    code\n    ```\n\n    - a\n      - b\n\n"
        "- term\n\n  what it is\n\n  or is not\n\n> q\n>\n> - r"
    )


def test_rows_of_the_main_text_are_tables(written: Written) -> None:
    """Cells keep their markup, and as many columns as they span."""
    html = "<table><caption>c<tr><td>a<td><b>b</b> | <code>x</code><tr><td colspan=2>d<br>e</table>"
    assert written(html, "a\nb | x\nd\ne") == "|  |  |\n| --- | --- |\n| a | **b** \\| `x` |\n| d<br>e |  |"


def test_tables_that_only_lay_a_page_out_are_none(written: Written) -> None:
    """With other tables, headings or code in them, or a single cell."""
    assert written("<table><tr><td>n<td><h2>h</h2><p>p</table>", "n\nh\np") == "n\n\n## h\n\np"
    assert written("<table><tr><td><table><tr><td>x</table></table>", "x") == "x"


def test_permalinks_are_left_out(written: Written) -> None:
    """The sign is in the main text as well."""
    html = '<h2>Title<a class=headerlink href="#t" title=x>¶</a></h2><p>p <a href="#n">1</a>'
    assert written(html, "Title¶\np 1") == "## Title\n\np [1](http://a.test/#n)"


def test_headings_of_what_is_kept(written: Written) -> None:
    """Also those that the main text lacks, but none above what is left out."""
    assert written("<h1>a</h1><h2>b</h2><p>x<h2>c</h2><p>y", "x") == "# a\n\n## b\n\nx"


def test_pictures(written: Written) -> None:
    """In text and between it; lazy ones; no pixels that count readers."""
    html = (
        "<p>x <img src=/i.png alt='a]b'><p><img data-src=/j.png src=data:,><p>y<p><img src=/k.png>"
        "<p>z<img width=1 height=1 src=/t.gif>"
    )
    assert written(html, "x\ny\nz") == (
        "x ![a\\]b](http://a.test/i.png)\n\n![](http://a.test/j.png)\n\ny\n\n![](http://a.test/k.png)\n\nz"
    )


def test_emphasis_touches_its_words(written: Written) -> None:
    """White space goes outside, empty markup goes, nested markup of one kind is one, lines close it."""
    assert written("<p>a<b> b </b>c<i></i><b><strong>d</strong></b><b>e<br>f</b>", "a b cde\nf") == (
        "a **b** c**d**<strong>e</strong>  \n**f**"
    )
    assert written("<p><a href=/x> <b>l</b> </a>m", "l m") == "[**l**](http://a.test/x) m"
    assert written("<p><code>a`b</code>", "a`b") == "``a`b``"


def test_text_that_looks_like_markup_is_text(written: Written) -> None:
    """Nothing that a page says becomes a link, a heading, a table or HTML."""
    said = [
        "[a](javascript:x)",
        "<script>",
        "&lt;b>",
        "| a | b |",
        "--- | ---",
        "====",
        "+ x",
        "1) y",
        "~~no~~",
        "snake_case _em_",
    ]
    html = "".join(f"<p>{line.replace('&', '&amp;').replace('<', '&lt;')}</p>" for line in said)
    assert written(html, "\n".join(said)).split("\n\n") == [
        "\\[a](javascript:x)", "\\<script>", "\\&lt;b>", "| a | b |", "\\--- | ---", "\\====", "\\+ x", "1\\) y",
        "~\\~no\\~\\~", "snake_case \\_em\\_",
    ]  # fmt: skip


def test_giant_pages_are_bounded(written: Written) -> None:
    """Rows, columns, lists without end, markup that is never closed."""
    rows = "<table>" + "<tr><td colspan=1000>x<td>y" * 3_000
    found = written(rows, "x\ny\n" * 3_000)
    assert len(found) < 3_000 * 220
    deep = "<ul><li>" * 3_000 + "x"
    assert len(written(deep, "x")) < 100
    assert len(written("<ol><li>a<blockquote>" * 1_000 + "<pre>" + "y\n" * 5_000, "a\ny")) < 5_000 * 80
    assert written("<p>" + "<b><i><a href=/x><code>" * 1_000 + "z", "z")


def test_control_characters_leave_the_text(written: Written) -> None:
    """A file is opened in terminals; nothing that is left becomes markup."""
    html = "<p>a\x1b[2Jb\u202ec <a href=/x>\u200ed</a><p>\x01# x<pre>\x07y\x0b\tz</pre>"
    assert written(html, "a[2Jbc d\n# x\ny z") == "a\\[2Jbc [d](http://a.test/x)\n\n\\# x\n\n```\ny\tz\n```"
    assert written("<p>a\x1bb", "a\x1bb") == "ab"


def test_formatting_that_a_block_closes_continues(written: Written) -> None:
    """As a tree reopens it, links included; an end tag ends it wherever it is."""
    assert written("<p><b>a<p>b</b> c", "a\nb c") == "**a**\n\n**b** c"
    assert written("<p><a href=/x>a<p>b</a> c", "a\nb c") == "[a](http://a.test/x)\n\n[b](http://a.test/x) c"
    assert written("<p><b>a <i>b</b> c</i> d", "a b c d") == "**a *b*** *c* d"
    assert written("<b><p>a</b> b", "a b") == "**a** b"


def test_what_no_one_sees_is_left_out(written: Written) -> None:
    """Elements that are never shown, in text and in code; the body of a page of frames."""
    html = "<p>a<script>b</script><style>c</style><template><p>d</template><svg><text>e</text></svg><select><option>f"
    assert written(html, "a") == "a"
    assert written("<frameset><frame src=/x><p>a", "a") == ""


@core_only
@pytest.mark.parametrize(
    ("html", "lines"),
    [
        ("<div>" * 100_000 + "x", "x"),
        ("<b><i>" * 100_000 + "x", "x"),
        ("<ul><li>" * 100_000 + "x", "x"),
        ("<blockquote>" * 100_000 + "x", "x"),
        ("<table><tr><td>" * 100_000 + "x", "x"),
        ("<a href=/x><p>" * 100_000 + "x", "x"),
        ("<table>" + "<tr><td colspan=64>x" * 100_000, "x\n" * 100_000),
        ("<ol start=999999999><li>" * 16 + "<pre>" + "y\n" * 400_000, "y"),
        ("<p>" + "<b>x</b>_&amp;[`" * 100_000, "x"),
        ("<p><b>" + "x<i>y</b>z</i><b>" * 100_000, "x"),
        ("<p><a href=/x>" + "]" * 1_000_000, "]" * 1_000_000),
        ("<p>" + "`" * 1_000_000, "`" * 1_000_000),
        ("<p>" + "<p>x" * 200_000, "x\n" * 200_000),
    ],
    ids=str.__len__,
)
def test_hostile_pages(core: ModuleType, html: str, lines: str) -> None:
    """No recursion, bounded output; in a time that grows with the square these would not end."""
    assert len(of_lines(core, html.encode(), lines)) < 33_000_000


def test_arguments() -> None:
    """An unknown style and a URL that is no page are errors; bytes are decoded."""
    core = load("rust")
    text, structure = core.structure_by(b"<p>\xe9", "windows-1252", [])
    assert core.markdown(structure, text, "http://a.test") == "é".encode()
    with pytest.raises(ValueError, match="inline, reference or none"):
        core.markdown(structure, text, "http://a.test", "no")
    with pytest.raises(core.UrlError):
        core.markdown(structure, text, "mailto:a")
