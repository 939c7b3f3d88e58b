"""Hosts by content: charsets declared rightly and wrongly, broken markup, NUL bytes, deep trees, other types, pages of
scripts only.
"""

from collections.abc import Callable

from benchmarks.web.prose import Prose
from benchmarks.web.site import STORED, Action, Page
from benchmarks.web.town import Town

_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
_UNWANTED = ("dropped(content_type)",)
_EITHER = (*STORED, *_UNWANTED)


def build(town: Town) -> None:
    """One host per family, one page per member."""
    _charsets(town)
    _markup(town)
    _types(town)
    _scripts_only(town)


def fixed(body: bytes) -> Callable[[Page, Prose], bytes]:
    """A body that does not depend on its page."""
    return lambda _page, _prose: body


def _html(charset: str) -> Action:
    return {"do": "body", "type": f"text/html; charset={charset}"}


def _charsets(town: Town) -> None:
    host = town.host("charsets")
    bare: Action = {"do": "body", "type": "text/html"}
    for name, charset, title, action, meta in _CHARSETS:
        head = f'<meta charset="{meta}">' if meta else ""
        text = (
            f"<!DOCTYPE html><html><head>{head}<title>{title}</title></head><body><p>{title} {title}</p></body></html>"
        )
        changes = {"title": title} if not name.startswith("wrong") else {}
        town.page(host, f"/{name}", "charset", render=fixed(text.encode(charset)), action=action or bare, **changes)


_CHARSETS: list[tuple[str, str, str, Action | None, str]] = [
    ("header-koi8-r", "koi8-r", "Добрый день", _html("koi8-r"), ""),
    ("header-1251", "windows-1251", "Новости города", _html("windows-1251"), ""),
    ("meta-shift_jis", "shift_jis", "日本語のページ", None, "shift_jis"),
    ("meta-euc-kr", "euc-kr", "한국어 페이지", None, "euc-kr"),
    ("meta-gb18030", "gb18030", "中文网页标题", None, "gb18030"),
    ("meta-big5", "big5", "繁體中文", None, "big5"),
    ("bom-utf-16", "utf-16", "Größe und Maß", None, ""),
    ("bom-utf-8", "utf-8-sig", "Naïve café", None, "windows-1252"),
    ("wrong-utf-8", "latin-1", "Größe und Maß", _html("utf-8"), ""),
    ("wrong-meta", "utf-8", "Größe und Maß", None, "shift_jis"),
    ("wrong-label", "utf-8", "Größe und Maß", _html("x-no-such-charset"), ""),
    ("wrong-utf-7", "utf-8", "Größe und Maß", _html("utf-7"), ""),
]


def _markup(town: Town) -> None:
    host = town.host("markup")
    deep = b"<title>Deep</title>" + b"<div>" * 300 + b"bottom" + b"</div>" * 300
    abyss = b"<title>Abyss</title>" + b"<div><span>" * 60_000 + b"bottom"
    bodies = {
        "nul": b"<!DOCTYPE html><title>Nul</title><p>be\x00fore</p>\x00\x00\x00<p>after</p>",
        "all-nul": b"\x00" * 5000,
        "deep-300": deep,
        "deep-120000": abyss,
        "unclosed": b"<html><body><p>one<p>two<table><tr><td><b><i>three</b></i><div></p></span></table></body><p>more",
        "no-tags": b"Only words, no markup at all. " * 200,
        "half-tag": b"<!DOCTYPE html><title>Half</title><p>text <a href='/never/half",
        "long-attribute": b'<title>Long</title><p data-x="' + b"x" * 150_000 + b'">text</p>',
        "many-attributes": b"<title>Many</title><p "
        + b" ".join(b'a%d="%d"' % (i, i) for i in range(5000))
        + b">text</p>",
        "comment-open": b"<title>Open</title><p>text</p><!-- <a href='/never/comment'>no</a>",
        "binary": bytes(range(256)) * 60,
        "bad-utf-8": b"<title>Bad</title><p>\xff\xfe\xc0\x80 \xed\xa0\x80 \xf8\x88\x80\x80\x80</p>",
        "long-title": b"<title>" + b"word " * 20_000 + b"</title><p>text</p>",
    }
    for name, body in bodies.items():
        town.page(host, f"/{name}", name, render=fixed(body))
    town.page(host, "/fine-after-all", "ordinary")


def _types(town: Town) -> None:
    host = town.host("types")
    unwanted = {
        "image/png": b"\x89PNG\r\n\x1a\n",
        "video/mp4": b"\x00\x00\x00 ftypisom",
        "application/zip": b"PK\x03\x04",
        "font/woff2": b"wOF2",
    }
    for kind, start in unwanted.items():
        name = kind.replace("/", ".")
        town.page(
            host,
            f"/file/{name}",
            kind,
            accept=_UNWANTED,
            action={"do": "body", "type": kind},
            render=fixed(start + b"\x00" * 3000),
        )
    huge: Action = {"do": "endless", "length": 10_000_000_000, "type": "video/mp4"}
    town.page(host, "/file/film", "10 GB of video", accept=_UNWANTED, action=huge, max_bytes=32 << 20)
    either = {
        "application/pdf": _PDF,
        "text/plain": b"plain words\n" * 50,
        "application/json": b'{"a":1}',
        "application/octet-stream": b"\x01" * 99,
    }
    for kind, body in either.items():
        town.page(
            host,
            f"/file/{kind.replace('/', '.')}",
            kind,
            accept=_EITHER,
            action={"do": "body", "type": kind},
            render=fixed(body),
        )
    wanted = {"application/xhtml+xml": "xhtml", "TEXT/HTML ; Charset=UTF-8": "odd-type"}
    for kind, name in wanted.items():
        town.page(host, f"/{name}", kind, action={"do": "body", "type": kind})
    town.page(host, "/no-type", "no content type", accept=_EITHER, action={"do": "body", "type": ""})
    town.page(host, "/image.png", "html named as an image", accept=(*STORED, "none"), action={"do": "body"})


def _scripts_only(town: Town) -> None:
    """Pages that are empty without a browser; the links their scripts would make are not for a crawl that renders
    nothing.
    """
    host = town.host("scripts only")
    for i in range(3):
        body = (
            f"<!DOCTYPE html><html><head><title>App {i}</title></head><body><div id=root></div>"
            f"<script>const a=document.createElement('a');a.href='/never/'+{i};a.textContent='more';root.append(a);"
            f"document.write('<a href=\"/never/written\">x</a>')</script></body></html>"
        )
        town.page(host, f"/app/{i}", "scripts only", render=fixed(body.encode()), title=f"App {i}")
