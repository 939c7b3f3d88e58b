"""Links of a page: which tags count, what they resolve to, how duplicates fold, the packed buffers."""

from __future__ import annotations

from types import ModuleType

import pytest
from nephila.native import PassOptions

from .conftest import check_page, core_only, links_of, urls_of

URL = "http://a.test/dir/page.html"


def urls(core: ModuleType, html: str, **limits: int) -> list[str]:
    """Hrefs of a page, after a check of all buffers."""
    page = core.page_pass(html.encode(), URL, "utf-8", PassOptions(**limits))
    check_page(page)
    return [url.removeprefix("http://a.test/dir/") for url in urls_of(page)]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<a href=1><area href=2><iframe src=3></iframe><a>none</a>", ["1", "2", "3"]),
        ("<frameset><frame src=1><frameset><frame src=2></frameset></frameset><frame src=3>", ["1", "2"]),
        ("<frame src=1><a href=2>", ["2"]),
        ("<p>x<frameset><frame src=1></frameset><a href=2>", ["2"]),
        ("<div><a href=1></a></div><frameset><frame src=2>", ["2"]),
        ("<meta http-equiv=refresh content='0; url=1'><meta http-equiv=Refresh content=5>", ["1"]),
        ("<template><a href=1></template><a href=2>", ["2"]),
        ("<template><svg><template></svg><a href=1></template><a href=2>", ["2"]),
        ("<noscript><a href=1></noscript>", ["1"]),
        ("<select><a href=1><option><a href=2></select>", ["1", "2"]),
        ("<svg><a href=1></a><iframe src=2></svg>", ["1"]),
        ("<svg><a xlink:href=1></a><a XLINK:HREF=2 /><a xlink:href=no href=3></a></svg><a xlink:href=no>",
         ["1", "2", "3"]),
        ("<math><a xlink:href=1></a></math>", ["1"]),
        ("<div><template shadowrootmode=open><a href=1></a></template></div><a href=2>", ["1", "2"]),
        ("<my-x><template shadowRootMode=Closed><p><a href=1></template></my-x>", ["1"]),
        ("<div><template shadowrootmode=open><a href=1></template><template shadowrootmode=open><a href=2></template>",
         ["1"]),
        ("<p><template shadowrootmode=open><div><template shadowrootmode=open><a href=1></template></div></template>",
         ["1"]),
        ("<div><template shadowrootmode=none><a href=1></template></div><a><template shadowrootmode=open><a href=2>",
         []),
        ("<body><template shadowrootmode=open><a href=1></template><template shadowrootmode=open><a href=2>", ["1"]),
        ("<head><template shadowrootmode=open><a href=1></template></head><a href=2>", ["2"]),
        ("<div><template><div><template shadowrootmode=open><a href=1></template></div></template></div>", []),
        ("<div><template shadowrootmode=open><template><a href=1></template></template></div><a href=2>", ["2"]),
        ("<iframe srcdoc='<a href=1>x</a><a href=&quot;2?a&amp;amp;b&quot;>'></iframe><a href=3>", ["1", "2?a&b", "3"]),
        ("<iframe srcdoc='<frameset><frame src=1></frameset><a href=2>' src=0><a href=3></iframe><a href=4>",
         ["0", "1", "4"]),
        ("<iframe srcdoc='<iframe srcdoc=&quot;<a href=1>&quot;></iframe><base href=/x/><a href=2>'></iframe>",
         ["1", "2"]),
        ("<template><iframe srcdoc='<a href=1>'></iframe></template><iframe srcdoc></iframe>", []),
        ("<nav><iframe srcdoc='</nav></div></body><a href=1>'></iframe><a href=2></nav>", ["1", "2"]),
        ("<svg><title><a href=1></title><desc><iframe src=2></iframe></desc></svg>", ["1", "2"]),
        ("<svg><p><iframe src=1></iframe>", ["1"]),
        ("<math><annotation-xml encoding=text/html><area href=1></annotation-xml></math>", ["1"]),
        ("<table><a href=1><tr><a href=2><td><a href=3></table>", ["1", "2", "3"]),
        ("<script><a href=1></script><style><a href=2></style><xmp><a href=3></xmp><a href=4>", ["4"]),
        ("<script><!--<script></script><a href=1>--></script><a href=2>", ["2"]),
        ("<script><!--></script><a href=1>", ["1"]),
        ("<textarea><a href=1></textarea><title><a href=2></title><iframe><a href=3></iframe>", []),
        ("<plaintext><a href=1>", []),
        ("<!-- <a href=1> --!><a href=2><!--><a href=3><!---><a href=4><? <a href=5>", ["2", "3", "4"]),
        ("<![CDATA[<a href=1>]]><svg><![CDATA[<a href=2>]]></svg>", []),
        ("</a href=1><a href=2 href=3 HREF=4>", ["2"]),
        ("<a href='1'/><a href=2/><A HREF=\"3\" class=x><a href = 4 ><a\nhref\n=\n5>", ["1", "2/", "3", "4", "5"]),
        ("<a title='>' href=1><a title=\">\" href=2><a =\"x\" href=3>", ["1", "2", "3"]),
        ("<a href=1", []),
        ("<a href='1>x", []),
        ("<a href=?a=1&amp;b=2><a href=?x&copy=1><a href=?y&copy;><a href='?z&#x26;&#38'>",
         ["page.html?a=1&b=2", "page.html?x&copy=1", "page.html?y%C2%A9", "page.html?z&&"]),
        ("<a href=a\0b>", ["a%EF%BF%BDb"]),
        ("<a href='\n a\tb\r\n'>", ["ab"]),
        ("<a href=javascript:x><a href=mailto:a@b><a href=data:,x><a href=tel:1><a href=ftp://a/>", []),
    ],
)  # fmt: skip
def test_which_tags_count(core: ModuleType, html: str, found: list[str]) -> None:
    """The link set is that of the standard's tree with scripting off, template contents left out."""
    assert urls(core, html) == found


@pytest.mark.parametrize(
    ("href", "resolved"),
    [
        ("http://b.test", "http://b.test/"),
        ("http://b.test?x", "http://b.test/?x"),
        ("http://B.test/", "http://b.test/"),
        ("//b.test:8080/x", "http://b.test:8080/x"),
        ("http://b.test:80/x", "http://b.test/x"),
        ("http://b.test:080/x", "http://b.test/x"),
        ("https://b.test:443/x", "https://b.test/x"),
        ("/x/./y/../z", "http://a.test/x/z"),
        ("/x/%2e%2e/z", "http://a.test/z"),
        ("/.x", "http://a.test/.x"),
        ("x:y", None),
        ("./x:y", "http://a.test/dir/x:y"),
        ("x/../..", "http://a.test/"),
        ("x y", "http://a.test/dir/x%20y"),
        ("ü", "http://a.test/dir/%C3%BC"),
        ("?'", "http://a.test/dir/page.html?%27"),
        ("x|{}`^", "http://a.test/dir/x|%7B%7D%60%5E"),
        ("\\\\b.test\\x", "http://b.test/x"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://b.0x7f/", None),
        ("http://xn--bcher-kva.test/", "http://xn--bcher-kva.test/"),
        ("http://b..test/", "http://b..test/"),
        ("http://b.test./", "http://b.test./"),
        ("", "http://a.test/dir/page.html"),
        ("#top", "http://a.test/dir/page.html"),
    ],
)
def test_resolving(core: ModuleType, href: str, resolved: str | None) -> None:
    """A link resolves as parse_url would, fast path or not."""
    page = core.page_pass(f'<a href="{href}">x</a>'.encode(), URL, "utf-8")
    assert urls_of(page) == ([resolved] if resolved else [])
    if resolved:
        parts = core.parse_url(href, URL)
        link = links_of(page)[0]
        assert (link.url, link.host, link.fingerprint) == (parts.href, parts.host_key, parts.fingerprint)


def test_base(core: ModuleType) -> None:
    """The first base href counts, for links before it, too."""
    page = core.page_pass(b"<a href=x><base target=y><base href=/b/><base href=/c/>", URL, "utf-8")
    assert (page.base, urls_of(page)) == ("http://a.test/b/", ["http://a.test/b/x"])
    for wrong in ("javascript:x", "http://[", "mailto:x"):
        page = core.page_pass(f"<base href='{wrong}'><base href=/c/><a href=x>".encode(), URL, "utf-8")
        assert (page.base, urls_of(page)) == (URL, ["http://a.test/dir/x"])


@pytest.mark.parametrize(
    ("page", "href", "resolved"),
    [
        ("http://a.test/x", "http://u1@a.test/y", "http://a.test/y"),
        ("http://a.test/x", "http://u:p@b.test:8080/y?q@r", "http://b.test:8080/y?q@r"),
        ("http://a.test/x", "//:p@a.test/@y", "http://a.test/@y"),
        ("http://a.test/x", "http://:@a.test/", "http://a.test/"),
        ("http://u:p@a.test/x", "y", "http://u:p@a.test/y"),
        ("http://u:p@a.test/x", "", "http://u:p@a.test/x"),
        ("http://u:p@a.test/x", "http://a.test/y?z", "http://u:p@a.test/y?z"),
        ("http://u:p@a.test/x", "http://A.test:80/y", "http://u:p@a.test/y"),
        ("http://u:p@a.test/x", "http://other@a.test/y", "http://u:p@a.test/y"),
        ("http://u:p@a.test/x", "https://a.test/y", "https://a.test/y"),
        ("http://u:p@a.test/x", "http://a.test:81/y", "http://a.test:81/y"),
        ("http://u:p@a.test/x", "http://b.test/y", "http://b.test/y"),
        ("http://u:p@a.test/x", "//b.test/y", "http://b.test/y"),
    ],
)
def test_userinfo_is_the_users(core: ModuleType, page: str, href: str, resolved: str) -> None:
    """A page does not choose credentials: its links have those of its own URL, and to other origins none."""
    assert urls_of(core.page_pass(f'<a href="{href}">x</a>'.encode(), page, "utf-8")) == [resolved]
    parts = core.parse_url(href, page)
    assert (parts.href, parts.host_key) == (resolved, core.parse_url(resolved).host_key)
    assert parts.fingerprint == core.parse_url(resolved).fingerprint


def test_userinfo_of_a_base_element(core: ModuleType) -> None:
    """A base element gives none either, and takes none away."""
    html = b"<base href='http://evil:x@a.test/b/'><a href=x>"
    assert urls_of(core.page_pass(html, URL, "utf-8")) == ["http://a.test/b/x"]
    assert urls_of(core.page_pass(html, "http://u:p@a.test/", "utf-8")) == ["http://u:p@a.test/b/x"]


@core_only
def test_duplicates_fold(core: ModuleType) -> None:
    """Duplicates fold into the first; nofollow stays only if all say so; the first text is the anchor."""
    html = (
        b"<a rel=nofollow href='x?b&a'></a><a rel='x UGC' href='x?a&b&utm_id=1'>one</a><a href=y rel=sponsored>y</a>"
        b"<a href=x?b&a>two</a><a href=y rel=nofollow>z</a>"
    )
    page = core.page_pass(html, URL, "utf-8")
    check_page(page)
    rows = [(link.url.rpartition("/")[2], link.anchor, link.nofollow) for link in links_of(page)]
    assert rows == [("x?b&a", "two", False), ("y", "y", True)]


def test_anchor_text(core: ModuleType) -> None:
    """Anchor text is collapsed, spans blocks, and is cut at a character."""
    html = "<a href=1>\n a <b>b</b><div>c</div><script>no</script></a><a href=2>" + "é" * 150 + "<a href=3><img alt=x>"
    assert [link.anchor for link in links_of(core.page_pass(html.encode(), URL, "utf-8"))] == ["a b c", "é" * 100, ""]


def test_kinds(core: ModuleType) -> None:
    """The kind of a link is that of its first occurrence."""
    html = b"<meta http-equiv=refresh content=1;r><a href=a><area href=b><iframe src=c></iframe><area href=a>"
    assert [link.kind for link in links_of(core.page_pass(html, URL, "utf-8"))] == [5, 0, 1, 2]


def test_bad_links_are_counted(core: ModuleType) -> None:
    """A link that cannot be parsed is skipped and counted; another scheme is only skipped."""
    page = core.page_pass(b"<a href=http://><a href='http://a b/'><a href=ftp://x/><a href=ok>", URL, "utf-8")
    assert (page.bad_links, page.link_count) == (2, 1)


def test_limit(core: ModuleType) -> None:
    """At most max_links come back, the first ones."""
    html = "".join(f"<a href={n}>" for n in range(50))
    assert urls(core, html, max_links=7) == [str(n) for n in range(7)]
    assert urls(core, html, max_links=0) == []


def test_page_url_must_be_http(core: ModuleType) -> None:
    """The page's own URL has to be an absolute http(s) URL."""
    with pytest.raises(core.UrlError, match="unsupported scheme 'file'"):
        core.page_pass(b"", "file:///x", "utf-8")


def test_a_long_base_does_not_multiply(core: ModuleType) -> None:
    """A megabyte of <base> and thousands of links: hrefs over 8 KiB count as bad, over 16 MiB in all none is made."""
    many = "".join(f"<a href={number}>" for number in range(5000))
    page = core.page_pass(f"<base href='http://a.test/{'x' * 1_000_000}/'>{many}".encode(), URL, "utf-8")
    assert (page.link_count, page.bad_links) == (0, 16)
    page = core.page_pass(f"<base href='http://a.test/{'x' * 8000}/'>{many}".encode(), URL, "utf-8")
    check_page(page)
    assert len(page.link_urls) <= 16 << 20
    assert page.link_count == 2092


@pytest.mark.parametrize(("length", "count"), [(8192, 1), (8193, 0)])
def test_the_longest_href(core: ModuleType, length: int, count: int) -> None:
    """8,192 bytes are a link, one more is none."""
    href = "http://a.test/".ljust(length, "x")
    page = core.page_pass(f"<a href={href}><a href=/y>".encode(), URL, "utf-8")
    check_page(page)
    assert (page.link_count, page.bad_links) == (count + 1, 1 - count)


def test_links_beyond_the_limits_are_counted(core: ModuleType) -> None:
    """Different ones beyond their number; beyond that of hrefs, and of their bytes, what stands there."""
    html = "".join(f"<a href=/{n % 30}>x</a>" for n in range(90)).encode()
    for most, left in ((40, 0), (30, 0), (29, 1), (10, 20)):
        found = core.page_pass(html, "http://a.test/", "utf-8", PassOptions(max_links=most))
        assert (found.link_count, found.links_left_out) == (min(most, 30), left)
    found = core.page_pass(html, "http://a.test/", "utf-8", PassOptions(max_links=5))
    assert (found.link_count, found.links_left_out) == (5, 15 + 3 * 10)
    base = b"<base href=http://a.test/" + b"x" * 8_000 + b"/>"
    found = core.page_pass(base + b"".join(b"<a href=%d>" % n for n in range(3_000)), "http://a.test/", "utf-8")
    assert found.link_count + found.links_left_out == 3_000
    assert found.links_left_out > 0
