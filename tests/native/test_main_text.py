"""The page pass tells a page's subject from its frame: small pages of each kind, other scripts, and hostile ones."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest
from nephila.native import PassOptions

from .conftest import check_page, core_only

pytestmark = core_only

MAX_LINES = 65_536
"""Lines of a page that the model looks at."""

PROSE = (
    "A golden orb-weaver builds the largest webs of all spiders, and it repairs them every single night of the year. ",
    "Nobody has counted how many insects end there, but the farmers of the valley are glad of every one of them. ",
    "In dry summers the threads turn yellow; after rain they are as clear as glass, and birds fly straight into them. ",
)
MENU = "".join(f'<li class="menu-item"><a href=/m{n}>Section {n}</a></li>' for n in range(12))
HEAD = f'<header class="site-header"><nav class="main-menu"><ul>{MENU}</ul></nav></header>'
FOOT = (
    '<footer class="site-footer"><p>Copyright 2026 Spider News. All rights reserved.</p><ul>'
    "<li><a href=/privacy>Privacy policy</a><li><a href=/terms>Terms</a></ul></footer>"
)
COOKIES = '<div id="cookie-banner" class="cookie-consent"><p>We use cookies for you.</p><button>OK</button></div>'
RELATED = (
    '<div class="related-posts"><h3>Related articles</h3><ul>'
    + "".join(f'<li class="card"><a href=/r{n}>Another story number {n}</a></li>' for n in range(6))
    + "</ul></div>"
)


def page(body: str, title: str = "The spider's web | Spider News") -> bytes:
    """A page with the frame that all sites have."""
    return f"<!doctype html><title>{title}</title><body>{HEAD}{body}{RELATED}{FOOT}{COOKIES}".encode()


def paragraphs(count: int) -> str:
    """So many paragraphs of prose."""
    return "".join(f"<p>{''.join(PROSE[n % 3 :] + PROSE[: n % 3])}</p>" for n in range(count))


ARTICLE = page(
    f"<main><article><h1>The spider's web</h1><div class=entry-content>{paragraphs(6)}</div></article></main>"
)
FORUM = page(
    "<main><h1>How do orb-weavers survive the winter?</h1>"
    + "".join(
        f'<div class="post"><div class="post-author"><a href=/u{n}>user{n}</a></div>'
        f'<div class="post-body message-content"><p>{PROSE[n % 3]}</p></div></div>'
        for n in range(8)
    )
    + "</main>",
    "How do orb-weavers survive the winter? - Forum",
)
DOCUMENTATION = page(
    f'<main><div class="document"><h1>webs.spin</h1><p>{PROSE[0]}</p><h2>Usage</h2>'
    f'<pre class="highlight"><code>from webs import spin\nspin(threads=8)</code></pre><p>{PROSE[1]}</p></div></main>',
    "webs.spin - documentation",
)
CHINESE = page(
    "<main><article><h1>蜘蛛网的秘密</h1>"
    + "<p>金色的圆网蜘蛛织出世界上最大的蛛网，每天夜里都会修补一次。山谷里的农民都很高兴，因为害虫少了许多。</p>" * 8
    + "</article></main>",
    "蜘蛛网的秘密 - 新闻",
)
JAPANESE = page(
    "<div id=contents><h1>蜘蛛の巣の秘密</h1>"
    + "<p>黄金色の蜘蛛は世界で最も大きな巣を作り、毎晩それを直す。谷の農家は害虫が減ったので喜んでいる。</p>" * 8
    + "</div>",
    "蜘蛛の巣の秘密 - ニュース",
)
TABLE = page(
    f"<main><h1>Webs by year</h1><p>{PROSE[0]}</p><table><tr><th>Year<th>Webs counted<th>Place</tr>"
    + "".join(f"<tr><td>{1900 + n}<td>{n * 37} webs<td>Valley number {n}</tr>" for n in range(120))
    + f"</table><p>{PROSE[1]}</p></main>",
    "Webs by year",
)
BARE = f"<title>Webs</title>{'<br><br>'.join(PROSE * 4)}".encode()


def run(core: ModuleType, body: bytes, **limits: Any) -> Any:
    """The page pass of one page."""
    return core.page_pass(body, "http://a.test/", "utf-8", PassOptions(**limits))


@pytest.mark.parametrize(
    ("body", "there"),
    [
        (ARTICLE, PROSE),
        (FORUM, PROSE),
        (DOCUMENTATION, (*PROSE[:2], "spin(threads=8)")),
        (CHINESE, ("金色的圆网蜘蛛",)),
        (JAPANESE, ("黄金色の蜘蛛",)),
        (TABLE, ("Valley number 3\n", "Valley number 117", *PROSE[:2])),
        (BARE, PROSE),
    ],
    ids=["article", "forum", "documentation", "chinese", "japanese", "table", "bare"],
)
def test_subject_without_frame(core: ModuleType, body: bytes, there: tuple[str, ...]) -> None:
    """Prose, posts, code and data are there, with or without markup; menu, cookie banner and footer are not."""
    text = run(core, body).main_text.decode()
    for part in there:
        assert part.strip() in text
    for part in ("Section 3", "cookies", "rights reserved", "Privacy policy"):
        assert part not in text


def test_noscript_counts_where_nothing_else_is(core: ModuleType) -> None:
    """Forums that draw themselves by script have their posts in noscript."""
    posts = "".join(f'<div class="topic-body crawler-post"><p>{PROSE[n % 3]}</p></div>' for n in range(6))
    text = run(core, page(f"<div id=app></div><noscript><h1>Webs</h1>{posts}</noscript>")).main_text.decode()
    assert PROSE[0].strip() in text


def test_lines_name_the_text(core: ModuleType) -> None:
    """`main_text` is the lines that `main_lines` names, rising, out of `text`."""
    found = run(core, ARTICLE)
    rows = list(struct.iter_unpack("<IIIHH", found.text_lines))
    numbers = [number for (number,) in struct.iter_unpack("<I", found.main_lines)]
    assert numbers == sorted(set(numbers))
    assert found.main_text == b"\n".join(found.text[rows[n][0] : rows[n][0] + rows[n][1]] for n in numbers)
    assert 0 < len(numbers) < len(rows)


def test_a_second_copy_is_no_main_text(core: ModuleType) -> None:
    """What a page says again for phones or for noscript stands in its main text once."""
    posts = "".join(f'<div class="post"><div class="post-body"><p>{PROSE[n]}</p></div></div>' for n in range(3))
    text = run(core, page(f"<main><h1>Webs</h1>{posts}<div class=phone>{posts}</div></main>")).main_text.decode()
    assert [text.count(prose.strip()) for prose in PROSE] == [1, 1, 1]


def test_verses_code_and_cells_repeat_themselves(core: ModuleType) -> None:
    """Equal lines of one template, of preformatted text and of a table's cells all stay."""
    verse, code = "The spider spins and spins her web again", "thread = spin(length=12, strong=True)"
    cell = "Forty webs, counted at dawn by two people"
    poem = f"<p>{PROSE[0]}<br>{verse}<br>and rests;<br>{verse}</p>"
    rows = f"<tr><td>First valley<td>{cell}<tr><td>Second valley<td>{cell}"
    text = run(
        core,
        page(
            f"<main><article><h1>The spider's web</h1><div class=entry-content>{paragraphs(2)}{poem}{poem}"
            f"<pre><code>{code}\n\n{code}</code></pre><table>{rows}</table></div></article></main>"
        ),
    ).main_text.decode()
    assert [text.count(part.strip()) for part in (verse, code, cell)] == [4, 2, 2]


CODE = "class Spider:\n    legs = 8\n\n\n    def spin(self):\n        return [\n            None,\n        ]\n\n    }"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("marked", [False, True], ids=["plain", "highlighted"])
def test_code_is_kept_whole(core: ModuleType, end: str, marked: bool) -> None:
    """Each line of a listing with its indentation, brackets that stand alone and empty lines too."""
    code = CODE.replace("\n", end)
    if marked:
        code = code.replace("def", "<span class=k>def</span>").replace("None", "<span class=kc>None</span>")
    listing = f'<div class="highlight-python3"><div class="highlight"><pre><span></span>{code}\n</pre></div></div>'
    text = run(core, page(f"<main><h1>Spider</h1><p>{PROSE[0]}</p>{listing}<p>{PROSE[1]}</p>{listing}</main>"))
    assert text.main_text.decode().count(CODE) == 2


def test_a_table_row_is_one_line(core: ModuleType) -> None:
    """Cells are set apart by a bar, an empty one too; several lines of a cell are one."""
    rows = "".join(f"<tr><td>Valley {n}<td><p>{n} webs</p><p>of silk</p><td><td>seen" for n in range(4))
    table = f"<table><thead><tr><th>Place<th>Webs<th>Notes<th></tr></thead>{rows}<tr><td><td>none<td>x</table>"
    text = run(core, page(f"<main><h1>Webs</h1><p>{PROSE[0]}</p>{table}<p>{PROSE[1]}</p></main>")).main_text.decode()
    expected = ["Place | Webs | Notes", *(f"Valley {n} | {n} webs of silk |  | seen" for n in range(4)), "| none | x"]
    assert "\n".join(expected) in text


def test_layout_in_tables_stays_lines(core: ModuleType) -> None:
    """Tables that hold headings, tables, code or texts of many lines are no rows of data."""
    long = "".join(f"<p>{PROSE[n % 3]}{n}</p>" for n in range(10))
    for inside in ("<h2>News</h2>", "<table><tr><td>deep</table>", "<pre>a\n b</pre>", long):
        rows = f"<tr><td>one<td>{inside}<tr><td>two<td>three"
        text = run(core, page(f"<main><p>{PROSE[0]}</p><table>{rows}</table></main>")).main_text.decode()
        assert "one |" not in text


@pytest.mark.parametrize("tag", ["ul", "ol", "dl"])
def test_lists_are_whole(core: ModuleType, tag: str) -> None:
    """Short items stay beside long ones, and a menu brings none of its items."""
    items = "".join(f"<{'dt' if tag == 'dl' else 'li'}>{item}" for item in ("x", PROSE[0], "y", PROSE[1], "2", "-v"))
    text = run(core, page(f"<main><h1>Webs</h1><p>{PROSE[2]}</p><{tag}>{items}</{tag}></main>")).main_text.decode()
    lines = [line.strip() for line in ("x", PROSE[0], "y", PROSE[1], "2", "-v")]
    assert "\n".join(lines) in text
    assert "Section" not in text


def test_notes_of_one_template_repeat_themselves(core: ModuleType) -> None:
    """Documentation says the same of many functions."""
    note = "Changed in version 3.9: the spider accepts threads of any length."
    parts = "".join(
        f'<dl class="function"><dt>spin{n}(web)</dt><dd><p>{PROSE[n % 3]}</p>'
        f'<div class="note"><p>{note}</p></div></dd></dl>'
        for n in range(5)
    )
    text = run(core, page(f'<main><div class="document"><h1>webs</h1>{parts}</div></main>')).main_text.decode()
    assert text.count(note) == 5


THREAD = page(
    f'<main><h1>How do orb-weavers survive the winter?</h1><div class="post">'
    f'<div class="post-body">{paragraphs(2)}</div></div>'
    + "".join(
        f'<div class="post comment"><div class="post-body message-content">'
        f"<p>{PROSE[n % 3]}(answered) {n}</p></div></div>"
        for n in range(6)
    )
    + "</main>",
    "How do orb-weavers survive the winter? - Forum",
)
COMMENTS = "".join(f'<li class="comment"><div class="comment-body"><p>{PROSE[n % 3]}{n}</p></div>' for n in range(4))
ESSAY = (
    f'<article><h1>The spider\'s web</h1><div class="entry-content">{paragraphs(6)}'
    f"<figure><img src=x><figcaption>{PROSE[1]} (caption)</figcaption></figure></div></article>"
    f'<div id="comments"><ol class="comment-list">{COMMENTS}</ol></div>'
)


@pytest.mark.parametrize(
    "says",
    [
        '<meta property="og:type" content="Article">',
        '<script type="application/ld+json">{"@context": "x", "@graph": [{"@type" : [ "NewsArticle"]}]}</script>',
        '<script type=\' application/LD+JSON \'>{"@type":"BlogPosting"}</script>',
    ],
)
def test_an_article_ends_where_its_comments_begin(core: ModuleType, says: str) -> None:
    """A page that calls itself an article has its text, without captions and what others wrote below it."""
    text = run(core, says.encode() + page(f"<main>{ESSAY}</main>")).main_text.decode()
    assert text.count(PROSE[0].strip()) == 6
    assert "(caption)" not in text
    assert not any(f"{PROSE[n % 3]}{n}" in text for n in range(4))
    assert "(answered)" not in run(core, says.encode() + THREAD).main_text.decode()


@pytest.mark.parametrize(
    "says",
    [
        '<meta property="og:type" content="article"><script type="application/ld+json">'
        '{"@type":"DiscussionForumPosting"}</script>',
        '<script>{"@type": "Article"}</script>',
        '<script type="application/ld+json">{"@type": {"Article": 1}}</script>',
        '<meta property="og:type" content="website">',
    ],
)
def test_threads_and_other_pages_keep_their_posts(core: ModuleType, says: str) -> None:
    """Posts are what a thread is about, whatever else the page calls itself."""
    text = run(core, says.encode() + THREAD).main_text.decode()
    assert text.count("(answered)") == 6


def test_an_article_in_a_box_named_after_comments(core: ModuleType) -> None:
    """A body whose class says that comments are open holds the article all the same."""
    body = f'<meta property="og:type" content="article"><div class="post comments-open">{paragraphs(6)}</div>'
    assert run(core, page(body)).main_text.decode().count(PROSE[0].strip()) == 6


def test_printed_data_is_no_text(core: ModuleType) -> None:
    """JSON that a template left in the page; a listing of it stays."""
    data = '{"layout": 2, "label": "' + PROSE[0].strip() + '"}'
    text = run(
        core, page(f"<main><article>{paragraphs(3)}<p>{data}</p>{paragraphs(3)}<pre>{data}</pre></article></main>")
    )
    assert text.main_text.decode().count(data) == 1


def test_only_on_demand(core: ModuleType) -> None:
    """Who wants links alone does not pay for main text."""
    found = run(core, ARTICLE, main_text=False)
    assert (found.main_text, found.main_lines) == (b"", b"")
    assert found.text == run(core, ARTICLE).text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"<body><img src=x>",
        b"<p>",
        b"\0\0\0",
        b"<title>Only a title</title>",
    ],
)
def test_no_text_is_no_main_text(core: ModuleType, body: bytes) -> None:
    """Nothing in, nothing out."""
    assert run(core, body).main_text == b""


@pytest.mark.parametrize(
    "body",
    [
        b"<div class='article content'>" * 20_000 + b"deep" + b"</div>" * 20_000,
        b"<p>x" * 20_000,
        b"<div class='" + b"aB-" * 300_000 + b"'>one long class",
        b"<a href=x>" + b"word " * 50_000,
        b"<h1>t</h1>" * 5_000 + b"<title>" + b"t" * 9_000,
        b"<p>" + b"." * 300_000,
        b"<ul>" + b"<li class=menu>" * 5_000 + b"\xff\xfe",
        b"</p>" * 5_000 + b"<table><tr><td>" * 3_000 + b"cell",
        b"<table><tr><td>a" + b"<td>" * 30_000 + b"b<tr>" + b"<td>c" * 9_000,
        b"<pre>a" + b"\r\n" * 70_000 + b"b\r\r\n\nc<tr>d</pre>" + b"<table><tr>e<td>f<tr>" * 3_000,
        b"<ul><li>" * 5_000 + b"<pre>x</pre>y" * 50,
    ],
    ids=["deep", "lines", "class", "link", "headings", "dots", "list", "tables", "cells", "empty", "lists"],
)
def test_hostile_markup_is_answered(core: ModuleType, body: bytes) -> None:
    """Depth, number and length are bounded: the pass ends, and its buffers are sound."""
    check_page(run(core, body))


def test_lines_beyond_the_limit_follow_the_last_before_them(core: ModuleType) -> None:
    """A page of ever more lines costs no more memory, and an endless list keeps its end."""
    lines = (b"<p>Sentence %d is of some length and goes on, and on.</p>" % n for n in range(MAX_LINES + 500))
    found = run(core, b"<article>" + b"".join(lines))
    numbers = [number for (number,) in struct.iter_unpack("<I", found.main_lines)]
    assert len(found.text_lines) == 16 * (MAX_LINES + 500)
    assert (MAX_LINES - 1 in numbers) == (MAX_LINES in numbers) == (MAX_LINES + 499 in numbers)
