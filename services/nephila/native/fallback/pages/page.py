"""The page pass on a tree of lexbor: title, meta, text lines, main text and links.

The results for links, title and directives are those of the core; its bounds on hostile pages are not: lexbor takes a
time that grows with the square of some pages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from struct import pack
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from nephila.native.fallback.pages.dateline import dateline
from nephila.native.fallback.pages.embedded import MAX_FRAMES, frame_document, is_reading, shadow_root
from nephila.native.fallback.pages.hidden import Visibility, visibility_of
from nephila.native.fallback.pages.json_ld import JsonLd
from nephila.native.fallback.pages.lines import CHROME, COMMENT, PRE, SPACES, Context, Lines
from nephila.native.fallback.pages.main_text import main_lines
from nephila.native.fallback.pages.microdata import Microdata
from nephila.native.fallback.pages.preformatted import is_code_block
from nephila.native.fallback.spelling import spelled_text
from nephila.native.fallback.texts import to_utf8
from nephila.native.fallback.urls import (
    UnsupportedScheme,
    UrlError,
    canonical_of,
    fingerprint_of,
    host_span,
    parse_http,
    query_in,
)
from nephila.native.pass_options import PassOptions
from nephila.native.refresh import refresh_target

MAX_VALUE: Final = 8192
MAX_META: Final = 100
HASH_BYTES: Final = 8
MAX_ANCHOR: Final = 200
MAX_HREF: Final = 8192
MAX_HREFS: Final = 16 << 20
"""Bytes of all hrefs of a page."""
KINDS: Final = {"a": 0, "area": 1, "iframe": 2, "frame": 3}
REFRESH: Final = 5
IN_MAIN, IN_NAV = 1 << 4, 1 << 5

_META_NAMES: Final = frozenset(
    ("author", "date", "pubdate", "publishdate", "last-modified", "keywords", "generator", "application-name")
)
_META_PREFIXES: Final = (
    "og:", "article:", "twitter:", "book:", "profile:", "video:", "music:", "product:", "dc.", "dcterms.", "citation_",
    "parsely-", "sailthru.",
)  # fmt: skip
_DATES: Final = frozenset(("datepublished", "datecreated", "datemodified"))
_TAG: Final = re.compile(r"[A-Za-z0-9-]{1,35}")
_MAX_HREFLANG: Final = 2_000
_CHANGES: Final = ("updat", "modif", "revis")
"""Words of classes of the date of a change."""
_NOFOLLOW: Final = frozenset(("nofollow", "ugc", "sponsored"))
_WORD: Final = re.compile(r"[A-Z]*[a-z]+|[A-Z]+")
_TRIM: Final = "".join(map(chr, range(0x21)))
_LINE_FLAGS: Final = {"heading": 1, "item": 2, "cell": 4, "chrome": 8, "pre": 16, "main": 32}


def _rows(name: str) -> list[list[str]]:
    lines = Path(__file__).parents[1].with_name(name).read_text("utf-8").splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


TAGS: Final = ["", *(row[0] for row in _rows("tags.txt"))]
_NUMBER: Final = {name: number for number, name in enumerate(TAGS) if number}
_BLOCK: Final = {row[0] for row in _rows("tags.txt") if "block" in row[1].split(",")}
_BREAK: Final = frozenset(("br", "hr"))
_RAW: Final = frozenset(("script", "style", "textarea", "template", "iframe", "noembed", "noframes"))
_HIDDEN: Final = _RAW | {row[0] for row in _rows("tags.txt") if "hidden" in row[2].split(",")}
_ROOTS: Final = frozenset(("html", "body"))
_FLAGS: Final = {row[0]: sum(_LINE_FLAGS.get(flag, 0) for flag in row[2].split(",")) for row in _rows("tags.txt")}
_COMMENT: Final = frozenset(word for row in _rows("words.txt") if row[0] == "comment" for word in row[1:])
_HTML_INSIDE: Final = frozenset(("desc", "foreignobject", "title", "mi", "mo", "mn", "ms", "mtext"))
"""Foreign elements whose children are HTML."""
_FOREIGN: Final = frozenset(("svg", "math", "mglyph", "malignmark"))
_HTML_TYPES: Final = frozenset(("text/html", "application/xhtml+xml"))


def _value(text: str | None) -> str:
    """Trimmed, at most `MAX_VALUE` bytes."""
    return (text or "").strip(SPACES).encode()[:MAX_VALUE].decode("utf-8", "ignore")


def _collapsed(text: str, limit: int) -> str:
    return (
        " ".join(filter(None, re.split(r"[ \t\n\r\f]+", text)))
        .encode()[:limit]
        .decode("utf-8", "ignore")
        .rstrip(SPACES)
    )


def _is_noted(name: str) -> bool:
    is_published = "publish" in name and not name.endswith("publisher")
    return name in _META_NAMES or name in _DATES or name.startswith(_META_PREFIXES) or is_published


def _spelled_value(text: str) -> str:
    return spelled_text(text).strip(SPACES)


def _lower(text: str) -> str:
    return text.encode().lower().decode()


class _Link:
    """A reference as it is in the page."""

    __slots__ = ("anchor", "chrome", "href", "kind", "line", "nofollow")

    def __init__(self, href: str, kind: int, nofollow: bool, chrome: bool, line: int) -> None:
        self.href, self.kind, self.nofollow, self.chrome, self.line = href, kind, nofollow, chrome, line
        self.anchor: list[str] = []


@dataclass(slots=True)
class _Element:
    """The state that descendants inherit: context of text, the open link, the frames around them, and whether they are
    hidden or foreign (svg, math)."""

    context: Context
    link: _Link | None
    hidden: Visibility
    foreign: bool
    depth: int
    frames: int
    is_block: bool = False

    @property
    def may_have_frames(self) -> bool:
        return not (self.hidden or self.foreign or self.frames >= MAX_FRAMES)


class _Page:
    """One walk over the tree, without recursion. O(nodes)."""

    def __init__(self, tree: LexborHTMLParser, options: PassOptions) -> None:
        self.agent = options.agent
        self.keeps_hidden = options.hidden_text
        self.lines = Lines(options.max_text_bytes)
        self.links: list[_Link] = []
        self.meta: list[tuple[str, str]] = []
        self.json_ld = JsonLd()
        self.microdata = Microdata(_value)
        self.time = ""
        self.hreflang = ""
        self.robots = ""
        self.title: str | None = None
        self.description: str | None = None
        self.lang: str | None = None
        self.base: str | None = None
        self.canonical: str | None = None
        self.refresh: str | None = None
        self.depth = 0
        todo: list[tuple[LexborNode | None, _Element]] = []
        if tree.root is not None:
            todo.append((tree.root, _Element(Context(), None, Visibility.SHOWN, False, 0, 0)))
        hosts: set[int] = set()
        """Elements with a shadow root."""
        while todo:
            node, around = todo.pop()
            if node is None:
                self._end_line(around.link)
            elif node.is_text_node:
                self._text(node.text_content or "", around)
            elif node.is_element_node:
                shadow = shadow_root(node, hosts)
                if shadow is not None:
                    todo.append((shadow, around))
                    continue
                inside = self._element(node, around)
                if inside is not None:
                    frame = frame_document(node) if around.may_have_frames else None
                    if frame is not None:
                        context = Context(0, around.context.flags)
                        self._end_line(around.link)
                        todo.append((None, around))
                        inner = _Element(context, None, around.hidden, False, around.depth + 1, around.frames + 1)
                        todo.append((frame, inner))
                    if inside.is_block and not around.hidden:
                        todo.append((None, inside))
                    todo += [(child, inside) for child in reversed(list(node.iter(include_text=True)))]
        self.lines.end()

    def _text(self, text: str, around: _Element) -> None:
        if around.hidden:
            return
        text = spelled_text(text)
        self.lines.add(text, around.context)
        if around.link is not None:
            around.link.anchor.append(text)

    def _element(self, node: LexborNode, around: _Element) -> _Element | None:
        """Note an element; the state for its children, None when they are of no interest."""
        tag = (node.tag or "").lower()
        attributes = node.attributes
        html = not around.foreign
        self.depth = max(self.depth, around.depth + 1)
        page = not around.frames
        if tag == "html" and page and self.lang is None and "lang" in attributes:
            self.lang = _value(attributes["lang"])
        elif tag == "title" and html:
            if self.title is None and page:
                self.title = _collapsed(spelled_text(node.text() or ""), MAX_VALUE)
            return None
        elif tag == "time" and not self.time:
            of = f"{attributes.get('class') or ''} {attributes.get('itemprop') or ''}".lower()
            self.time = "" if any(word in of for word in _CHANGES) else _value(attributes.get("datetime"))
        if page and "itemprop" in attributes and tag != "meta" and not around.context.flags & COMMENT:
            self.microdata.note(node, attributes)
        if tag == "script" and _lower(attributes.get("type") or "").strip(SPACES) == "application/ld+json":
            if page:
                self.json_ld.read(node.text() or "")
        elif tag in ("base", "link", "meta"):
            if page:
                self._head(tag, attributes)
            return None
        elif tag in _BREAK and html:
            self._end_line(around.link)
        link = around.link
        name = "href" if tag in ("a", "area") else "src"
        if not html and name not in attributes:
            name = "xlink:href"
        if tag in KINDS and (html or tag == "a") and name in attributes:
            nofollow = not _NOFOLLOW.isdisjoint(_lower(attributes.get("rel") or "").split())
            link_of_element = self._link(attributes[name] or "", KINDS[tag], nofollow, around.context.flags)
            link = link_of_element if tag == "a" else link
        context = around.context
        is_code = tag == "code" and html and not context.flags & PRE and is_code_block(node)
        block = is_code or (tag in _BLOCK and html)
        if block and not around.hidden:
            self._end_line(around.link)
        flags = context.flags | (_FLAGS.get("pre" if is_code else tag, 0) if html else 0)
        if block and not flags & COMMENT and self._is_comment(attributes):
            flags |= COMMENT
        context = Context(_NUMBER["pre" if is_code else tag] if block else context.tag, flags, link is not None)
        foreign = tag in _FOREIGN or (around.foreign and tag not in _HTML_INSIDE)
        if tag == "annotation-xml" and _lower(attributes.get("encoding") or "") in _HTML_TYPES:
            foreign = False
        hidden = around.hidden
        if html and not self.keeps_hidden and tag not in _ROOTS:
            hidden = visibility_of(tag, attributes, hidden, block)
        if tag in _HIDDEN or is_reading(tag, node):
            hidden = Visibility.HIDDEN
        return _Element(context, link, hidden, foreign, around.depth + 1, around.frames, is_code or tag in _BLOCK)

    def _end_line(self, link: _Link | None) -> None:
        self.lines.end()
        if link is not None:
            link.anchor.append(" ")

    @staticmethod
    def _is_comment(attributes: dict[str, str | None]) -> bool:
        values = (attributes.get(name) for name in ("class", "id", "role", "itemprop"))
        return any(word.lower() in _COMMENT for value in values if value for word in _WORD.findall(value))

    def _link(self, href: str, kind: int, nofollow: bool, flags: int) -> _Link:
        link = _Link(href, kind, nofollow, bool(flags & CHROME), len(self.lines.done))
        self.links.append(link)
        return link

    def _head(self, tag: str, attributes: dict[str, Any]) -> None:
        if tag == "base":
            if self.base is None and "href" in attributes:
                self.base = attributes["href"] or ""
        elif tag == "link":
            is_canonical = "canonical" in _lower(attributes.get("rel") or "").split()
            if is_canonical and self.canonical is None and "href" in attributes:
                self.canonical = attributes["href"] or ""
            self._note_language(attributes)
        elif "content" in attributes:
            self._meta(_value(attributes["content"]), attributes)

    def _note_language(self, attributes: dict[str, Any]) -> None:
        """Note <link rel=alternate hreflang=… href=…>."""
        lang, href = _value(attributes.get("hreflang")), _value(attributes.get("href"))
        line = f"{lang} {href}"
        if not _TAG.fullmatch(lang) or not href or re.search(r"\s", href):
            return
        if "alternate" not in _lower(attributes.get("rel") or "").split():
            return
        if len(self.hreflang.encode()) + len(line.encode()) < _MAX_HREFLANG:
            self.hreflang += f"\n{line}" if self.hreflang else line

    def _meta(self, content: str, attributes: dict[str, Any]) -> None:
        if _lower(attributes.get("http-equiv") or "") == "refresh":
            target = refresh_target(content)
            if target is not None:
                self.refresh = target if self.refresh is None else self.refresh
                self._link(target, REFRESH, False, 0)
        name = _lower(_value(attributes["property"] if "property" in attributes else attributes.get("name")))
        itemprop = _lower(_value(attributes.get("itemprop")))
        if "property" not in attributes and "name" not in attributes and itemprop in _DATES:
            name = itemprop
        if name in ("robots", self.agent):
            if len(self.robots) + len(content) < MAX_VALUE:
                self.robots += ("," if self.robots else "") + _lower(content)
        elif name == "description":
            self.description = _spelled_value(content) if self.description is None else self.description
        elif _is_noted(name) and len(self.meta) < MAX_META:
            is_reference = content.startswith("/") or "://" in content
            self.meta.append((name, content if is_reference else _spelled_value(content)))


class PagePass:
    """The result of the page pass. Buffers are little-endian; their layouts are in ../README.md."""

    def __init__(self, page: _Page, url: str, encoding: str, options: PassOptions) -> None:
        self._encoding = encoding
        self.base = self._base(page.base, url)
        self.title = page.title or ""
        self.lang = page.lang or ""
        self.canonical = self._resolved(page.canonical)
        self.robots = page.robots
        self.description = page.description or ""
        self.meta = [
            (name, _spelled_value(value)) for name, value in page.json_ld.entries(page.description is None)
        ] + page.meta
        self.meta += page.microdata.entries()
        self.refresh = self._resolved(page.refresh)
        self.depth = page.depth
        lines = page.lines.done
        noted = {"time": page.time, "dateline": dateline(lines, self.title, _NUMBER["h1"]), "hreflang": page.hreflang}
        self.meta += [(name, value) for name, value in noted.items() if value]
        texts = [line.text.encode() for line in lines]
        self.text = b"\n".join(texts)
        rows, start = [], 0
        for line, text in zip(lines, texts, strict=True):
            rows.append(pack("<IIIHH", start, len(text), line.link_bytes, line.context.tag, line.context.flags))
            start += len(text) + 1
        self.text_lines = b"".join(rows)
        numbers = main_lines(lines, self.title, _NUMBER["h1"]) if options.main_text else []
        self.main_lines = pack(f"<{len(numbers)}I", *numbers)
        self.main_text = b"\n".join(texts[number] for number in numbers)
        self.comments = b""
        self.structure = b""
        """The native core alone makes structures, see `structure.py`."""
        text = self.main_text or self.text
        self.text_hash = sha256(text).digest()[:HASH_BYTES] if text else b""
        self._links(page.links, options.max_links, set(numbers), options.main_text)

    def _base(self, written: str | None, url: str) -> str:
        try:
            return url if written is None else parse_http(query_in(written, self._encoding), url)
        except UrlError:
            return url

    def _resolved(self, written: str | None) -> str:
        try:
            return "" if written is None else parse_http(query_in(written.strip(_TRIM), self._encoding), self.base)
        except UrlError:
            return ""

    def _links(self, written: list[_Link], max_links: int, main: set[int], places: bool) -> None:
        """Resolve the links and fold those with one fingerprint. O(bytes of hrefs)."""
        self.bad_links = self.links_left_out = 0
        hrefs: dict[str, str | None] = {}
        rows: dict[bytes, list[Any]] = {}
        """Fingerprint → href, span of the host key, anchor, flags."""
        left_out: set[bytes] = set()
        spent = 0
        for number, link in enumerate(written):
            if link.href not in hrefs and len(hrefs) >= 4 * max_links:
                self.links_left_out += 1
                continue
            if link.href not in hrefs:
                try:
                    href = parse_http(query_in(link.href.strip(_TRIM), self._encoding), self.base)
                except UrlError as error:
                    self.bad_links += not isinstance(error, UnsupportedScheme)
                    hrefs[link.href] = None
                    continue
                spent += len(href)
                if spent > MAX_HREFS:
                    self.links_left_out += len(written) - number
                    break
                self.bad_links += len(href) > MAX_HREF
                hrefs[link.href] = href if len(href) <= MAX_HREF else None
            resolved = hrefs[link.href]
            if resolved is None:
                continue
            start, end = host_span(resolved)
            key = fingerprint_of(resolved[start:end], canonical_of(resolved))
            chrome, inside = places and link.chrome, places and link.line in main
            anchor = _collapsed("".join(link.anchor), MAX_ANCHOR)
            row = rows.get(key)
            if row is None:
                if len(rows) >= max_links:
                    self.links_left_out += key not in left_out
                    left_out.add(key)
                    continue
                flags = link.nofollow | link.kind << 1 | IN_MAIN * inside | IN_NAV * chrome
                rows[key] = [resolved, (start, end), anchor, flags]
                continue
            row[2] = row[2] or anchor
            row[3] &= ~((not link.nofollow) | IN_NAV * (not chrome))
            row[3] |= IN_MAIN * inside
        self._pack(rows)

    def _pack(self, rows: dict[bytes, list[Any]]) -> None:
        urls = [row[0].encode() for row in rows.values()]
        anchors = [row[2].encode() for row in rows.values()]
        spans: list[int] = []
        at = 0
        for url, row in zip(urls, rows.values(), strict=True):
            spans += (at + row[1][0], at + row[1][1])
            at += len(url)
        self.link_count = len(rows)
        self.link_urls, self.link_ends = b"".join(urls), _ends(urls)
        self.anchors, self.anchor_ends = b"".join(anchors), _ends(anchors)
        self.fingerprints = b"".join(rows)
        self.host_spans = pack(f"<{len(spans)}I", *spans)
        self.link_flags = bytes(row[3] for row in rows.values())


def _ends(parts: list[bytes]) -> bytes:
    ends, end = [], 0
    for part in parts:
        end += len(part)
        ends.append(end)
    return pack(f"<{len(ends)}I", *ends)


_DEFAULTS: Final = PassOptions()


def page_pass(
    body: bytes,
    url: str,
    encoding: str,
    options: PassOptions = _DEFAULTS,
) -> PagePass:
    """Title, meta, text lines and links of an HTML page.

    `encoding` is a WHATWG label ("" = windows-1252); ValueError for an unknown one, UrlError if `url` is not an
    absolute http(s) URL.
    """
    document = parse_http(url)
    tree = LexborHTMLParser(to_utf8(body, encoding))
    return PagePass(_Page(tree, options), document, encoding, options)
