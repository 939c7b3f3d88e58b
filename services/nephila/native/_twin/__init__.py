"""The pure-Python twin of the native core: the same results under the same contract suite, slower.

Its modules mirror those of core/src one to one; a change to one is a change to both.
"""

from __future__ import annotations

from struct import pack

from nephila.native._twin import entities
from nephila.native._twin import links as _links
from nephila.native._twin import tokenizer as t
from nephila.native._twin.encoding import is_storable, sniff_encoding, to_utf8
from nephila.native._twin.hosts import HostStore
from nephila.native._twin.maintext import main_text as _main_text
from nephila.native._twin.robots import RobotsRules, robots_rule, robots_sitemaps
from nephila.native._twin.spaces import is_tidy, quoted, trimmed
from nephila.native._twin.stack import NO_BOUND
from nephila.native._twin.tags import TAGS
from nephila.native._twin.tree import Page
from nephila.native._twin.trie import Trie
from nephila.native._twin.urls import UrlError, UrlParts, parse_any, parse_document, parse_url

_MAX_BODY = 2**31 - 1


class PagePass:
    """What the page pass found. Buffers are little-endian; their layouts are in ../README.md."""

    __slots__ = (
        "anchor_ends", "anchors", "bad_links", "base", "canonical", "depth", "description", "fingerprints",
        "host_spans", "lang", "link_count", "link_ends", "link_flags", "link_urls", "links_left_out", "main_lines",
        "main_text", "meta", "refresh", "robots", "text", "text_lines", "title",
    )  # fmt: skip

    def __init__(self, data: bytes, url: str, max_links: int, max_text: int, main: bool, agent: str) -> None:
        document = parse_document(url)
        page = Page(data, max_links, max_text, main, agent)
        page.run()
        base = _links.base_of(page, document)
        self.text = b"".join(page.text.parts)
        links = _links.finish(page, base, self.text, max_links)
        self.title = (page.title or b"").decode()
        self.lang = page.lang or ""
        self.base = _links.base_href(base)
        self.canonical = _links.resolve_one(base, page.canonical, False)
        self.robots = page.robots
        self.description = page.description or ""
        self.meta = page.meta
        refresh = None if page.refresh is None else page.refresh.encode()
        self.refresh = _links.resolve_one(base, refresh, True)
        self.text_lines = b"".join(pack("<IIIHH", *line[:5]) for line in page.text.lines)
        lines = page.text.lines
        kept: list[int] = []
        self.main_text = b""
        if main:
            title, article = page.title or b"", page.says_article and not page.says_thread
            kept, self.main_text = _main_text(self.text, lines, page.boxes.items, title, article)
        _links.mark_main(page, kept, links)
        self.main_lines = _u32s(kept)
        self.link_count = len(links.ends)
        self.link_urls = b"".join(links.urls)
        self.link_ends = _u32s(links.ends)
        self.fingerprints = b"".join(links.keys)
        self.host_spans = _u32s(links.host_spans)
        self.anchors = b"".join(links.anchors)
        ends, end = [], 0
        for anchor in links.anchors:
            end += len(anchor)
            ends.append(end)
        self.anchor_ends = _u32s(ends)
        self.link_flags = bytes(links.flags)
        self.bad_links = links.bad
        self.links_left_out = page.left_out + links.left_out
        self.depth = NO_BOUND if page.tok.crowded else page.stack.depth()


def _u32s(values: list[int]) -> bytes:
    return pack(f"<{len(values)}I", *values)


def page_pass(
    body: bytes,
    url: str,
    encoding: str,
    *,
    max_links: int = 10_000,
    max_text_bytes: int = 4_000_000,
    main_text: bool = True,
    agent: str = "nephila",
) -> PagePass:
    """Title, meta, text lines and links of an HTML page in one scan without a tree. O(bytes).

    `encoding` is a WHATWG label ("" = windows-1252); ValueError for one nobody knows and for more than 2^31 bytes,
    UrlError if `url` is not an absolute http(s) URL. `agent`: the name in <meta name> that robots directives may stand
    under beside "robots".
    """
    parse_document(url)
    data = to_utf8(body, encoding)
    if len(data) > _MAX_BODY:
        raise ValueError("page too large")
    return PagePass(data, url, max_links, max_text_bytes, main_text, agent)


_STATES = {
    "RCDATA state": t.RCDATA,
    "RAWTEXT state": t.RAWTEXT,
    "Script data state": t.SCRIPT,
    "PLAINTEXT state": t.PLAINTEXT,
    "CDATA section state": t.CDATA,
}


def _tokens(text: str, state: str, last: str) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """The tokenizer alone, for the html5lib tokenizer tests; the same as the core's."""
    tok = t.Tokenizer(text.encode())
    tok.all_attrs = True
    tok.raw_name = last.encode()
    tok.raw = _STATES.get(state, t.DATA)
    out: list[tuple[str, str, list[tuple[str, str]]]] = []

    def clean(data: bytes) -> str:
        return entities.decode(data, False, True).decode()

    while (kind := tok.next()) != t.EOF:
        if kind in (t.TEXT, t.RAW):
            data = tok.data[slice(*tok.span)]
            references = kind == t.TEXT or tok.raw_kind == t.RCDATA
            # The tree drops NULs of the data state itself: here they stand as they came.
            keep = kind == t.TEXT or tok.raw_kind == t.CDATA
            parts = data.split(b"\0") if keep else [data]
            piece = "\0".join(entities.decode(part, references, False).decode() for part in parts)
            if out and out[-1][0] == "C":
                piece = out.pop()[1] + piece
            out.append(("C", piece, []))
        elif kind == t.END:
            out.append(("E", clean(tok.name), []))
        else:
            attributes: dict[str, str] = {}
            for name, value in tok.attrs:
                attributes.setdefault(clean(name), entities.decode(value, True, True).decode())
            out.append(("s" if tok.self_closing else "S", clean(tok.name), list(attributes.items())))
    return out


__all__ = [
    "TAGS",
    "HostStore",
    "PagePass",
    "RobotsRules",
    "Trie",
    "UrlError",
    "UrlParts",
    "is_storable",
    "is_tidy",
    "page_pass",
    "parse_any",
    "parse_url",
    "quoted",
    "robots_rule",
    "robots_sitemaps",
    "sniff_encoding",
    "to_utf8",
    "trimmed",
]
