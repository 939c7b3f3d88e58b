"""The bytes of a structure: beside any text they are the same structure, and damage is no structure."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import load

core = load("rust")
URL = "http://a.test/b/c"
DICTIONARY = Path(__file__).parents[2] / "services/nephila/native/core/fuzz/page.dict"
PAGE = """<body><h1>Head</h1><p>Some <b>bold</b> and <a href="/x">a link</a>, as <code>c</code>.<ul><li>one<li><input
type=checkbox checked>two</ul><pre class=language-py>x = 1

y = 2</pre><table><tr><th rowspan=2>A<th colspan=2>B<tr><td>1<td>2</table>
<p>Und ein Wörtchen 数字 <img src=/i.png alt=i>"""


def stored(body: bytes) -> tuple[bytes, bytes]:
    """Text and structure of a page as its row has them."""
    found = core.page_pass(body, URL, "utf-8")
    return found.main_text or found.text, found.structure


def pages() -> Iterator[bytes]:
    """A page with all kinds of blocks, and pieces of markup in any order."""
    yield PAGE.encode()
    chance = random.Random(44)
    rows = [row.strip() for row in DICTIONARY.read_text("ascii").splitlines() if row.startswith('"')]
    pieces = [row[1:-1].encode().decode("unicode_escape").encode("latin-1") for row in rows]
    for _ in range(300):
        yield b"".join(chance.choice(pieces) + b" some words" for _ in range(chance.randrange(80)))


def test_the_same_markdown_beside_any_text() -> None:
    """Beside the main text, all text, another text and none: a row may have each of them."""
    for body in pages():
        check_other_texts(body)


def check_other_texts(body: bytes) -> None:
    """Markdown and JSON do not depend on the text beside which the structure is stored."""
    text, structure = stored(body)
    made = core.markdown(structure, text, URL)
    for other in (core.page_pass(body, URL, "utf-8").text, text[::2].decode("utf-8", "ignore").encode(), b"", b"x"):
        assert core.markdown(core.recoded(structure, text, other), other, URL) == made
        assert core.blocks(core.recoded(structure, text, other), other, URL) == core.blocks(structure, text, URL)


def test_blocks_are_json() -> None:
    """Kind, level, language, cells with their spans, links and pictures with absolute URLs."""
    text, structure = stored(PAGE.encode())
    blocks = json.loads(core.blocks(structure, text, URL))
    assert [one["kind"] for one in blocks] == ["heading", "text", "text", "text", "code", "table", "text"]
    assert blocks[0] == {"kind": "heading", "level": 1, "text": "Head"}
    assert blocks[1]["links"] == [{"url": "http://a.test/x", "text": "a link"}]
    assert (blocks[2]["list"], blocks[3]["done"]) == (1, True)
    assert (blocks[4]["language"], blocks[4]["text"]) == ("py", "x = 1\n\ny = 2")
    assert blocks[5]["rows"][0] == [
        {"text": "A", "head": True, "rows": 2},
        {"text": "B", "head": True, "columns": 2},
    ]
    assert blocks[6]["images"] == [{"url": "http://a.test/i.png", "text": "i"}]


def test_a_heading_is_no_link_to_itself() -> None:
    """Generators of documentation make each heading its permalink; a link to another page stays."""
    html = '<h2 id=a><a href="#a">Own</a></h2><p>See <a href="#a">above</a>.<h2><a href="/b">Other</a></h2><p>x'
    text, structure = core.structure_by(html.encode(), "utf-8", [])
    lines = core.markdown(structure, text, URL).decode().split("\n\n")
    assert lines[0] == "## Own"
    assert "](#a)" in lines[1] or "](http://a.test/" in lines[1]
    assert lines[2] == "## [Other](http://a.test/b)"


def test_three_styles_of_links() -> None:
    """In the text, at the end with each URL once, and none, without pictures."""
    html = '<p>A <a href="/x">one</a> and <a href="/x">again</a>, <a href="/y">two</a> <img src=/i.png>'
    text, structure = core.structure_by(html.encode(), "utf-8", [])
    made = [core.markdown(structure, text, URL, style).decode() for style in ("inline", "reference", "none")]
    assert made[0].startswith("A [one](http://a.test/x) and [again](http://a.test/x), [two](http://a.test/y)")
    assert made[1] == (
        "A [one][1] and [again][1], [two][2] ![](http://a.test/i.png)\n\n[1]: http://a.test/x\n[2]: http://a.test/y"
    )
    assert made[2] == "A one and again, two"


def test_damage_is_no_structure() -> None:
    """Other bytes, another version, another text: nothing, and no error."""
    text, structure = stored(PAGE.encode())
    assert core.markdown(structure, text + b"x", URL) == b""
    assert core.markdown(b"\x02" + structure[1:], text, URL) == b""
    assert core.markdown(b"# Markdown", text, URL) == b""
    chance = random.Random(44)
    for _ in range(2_000):
        damaged = bytearray(structure)
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        core.markdown(bytes(damaged[: chance.randrange(len(damaged) + 1)]), text, URL)
        core.blocks(bytes(damaged), text, URL)


def test_another_base_is_kept_without_credentials() -> None:
    """Links are relative to it; the user of the page's own URL is not stored."""
    body = b'<base href="/other/"><p>A sentence with <a href="x">a link</a> in it.'
    found = core.page_pass(body, "http://me:secret@a.test/b", "utf-8")
    text = found.main_text or found.text
    assert b"(http://a.test/other/x)" in core.markdown(found.structure, text, "http://a.test/b")


def test_formulas_notes_and_admonitions() -> None:
    """TeX once, without what is shown beside it; notes with their text; a quote with a title."""
    html = (
        '<p>E: <span class="katex"><span class="katex-mathml"><math><semantics><mi>E</mi>'
        '<annotation encoding="application/x-tex">E = mc^2</annotation></semantics></math></span>'
        '<span class="katex-html" aria-hidden="true">E=mc2</span></span>,'
        ' <span class="math notranslate">\\(a_b\\)</span> <script type="math/tex">x_1</script> '
        'H<sub>2</sub>O<sup><a class="footnote-ref" href="#fn:1">1</a></sup>'
        '<div class="admonition tip"><p class="admonition-title">Tip</p><p>Said so.</div>'
        '<ol><li id="fn:1"><p>A note. <a class="footnote-backref" href="#fnref:1">\u21a9</a></ol>'
    )
    text, structure = core.structure_by(html.encode(), "utf-8", [])
    assert core.markdown(structure, text, URL).decode() == (
        "E: $E = mc^2$, $a_b$ $x_1$ H<sub>2</sub>O[^1]\n\n> **Tip**\n>\n> Said so.\n\n[^1]: A note."
    )
    assert b"E=mc2" not in text
    assert "\u21a9".encode() not in text


def test_tools_beside_code_and_texts_are_no_content() -> None:
    """The link that runs an example, and what opens a text that is closed."""
    words = "A sentence of the page that is long enough to be its main text, as everybody sees at once. "
    page = (
        f"<body><h1>T</h1><details open><summary class=hideme><span>Expand description</span></summary><p>{words * 3}"
        f"<pre>let a = 1;</pre><a class='test-arrow' href='//a.test/?code=1'>Run</a></details><p>{words * 2}"
        f"<a class=test-arrows href=/x>Further</a>"
    )
    text, structure = stored(page.encode())
    made = core.markdown(structure, text, URL).decode()
    for shown in (text.decode(), made):
        assert "let a = 1;" in shown
        assert "Further" in shown
        assert "Run" not in shown
        assert "Expand" not in shown


@pytest.mark.parametrize("name", ["navheader", "md-footer", "wy-breadcrumbs", "sub-nav"])
def test_bars_of_documentation_are_no_content(name: str) -> None:
    """Neither text nor structure has them; a class of which the name is only a part is content."""
    words = "A sentence of the page that is long enough to be its main text, as everybody sees at once. "
    bar = f'<div class="x {name}"><table><tr><td>Prev<td>Up<td>Next<tr><td>One<td>Two<td>Three</table></div>'
    text, structure = stored(f"<body>{bar}<h1>T<a class=headerlink href=#t>\u00b6</a></h1><p>{words * 3}".encode())
    made = core.markdown(structure, text, URL).decode()
    assert "Prev" not in text.decode() + made
    assert "\u00b6" not in text.decode() + made
    kept = stored(f'<body><h1>T</h1><div class="{name}-x"><p>{words * 3}</div>'.encode())[0]
    assert words.strip() in kept.decode()
