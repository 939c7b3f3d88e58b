"""From raw links to packed buffers: resolve, canonicalise, fingerprint, drop duplicates."""

from __future__ import annotations

from typing import Final

import url as whatwg

from nephila.native._twin import entities
from nephila.native._twin.page import PageBase, RawLink
from nephila.native._twin.text import collapse
from nephila.native._twin.urls import (
    TRIM,
    UnsupportedScheme,
    UrlError,
    canonical_of,
    fingerprint_of,
    host_span,
    parse_document,
    parse_http,
)

MAX_ANCHOR: Final = 200
"""Longest anchor text in bytes."""
MAX_HREF: Final = 8192
"""Longest href in bytes: what servers take. A longer one is a bad link."""
MAX_HREFS: Final = 16 << 20
"""Bytes of all hrefs of a page, duplicates and too long ones included: every relative link costs its whole base."""


NONE: Final = -1
"""Index of a link that was left out."""
IN_MAIN: Final = 1 << 4
IN_CHROME: Final = 1 << 5
"""Bits of a link's flags that say where it stands."""


class Links:
    """The links of a page as columns; row i of each belongs to link i."""

    def __init__(self) -> None:
        self.urls: list[bytes] = []
        self.ends: list[int] = []
        self.keys: list[bytes] = []
        self.host_spans: list[int] = []
        self.anchors: list[bytes] = []
        self.flags = bytearray()
        self.bad = 0
        self.left_out = 0
        self.of_raw: dict[RawLink, int] = {}


def resolve(base: whatwg.URL, raw: bytes, decoded: bool) -> str:
    """The href (no fragment) of a reference; UrlError if it is not http(s) or cannot be parsed."""
    text = (raw if decoded else entities.decode(raw, True, True)).decode()
    return parse_http(text.strip(TRIM), base)


def base_of(page: PageBase, document: whatwg.URL) -> whatwg.URL:
    """The first <base href> if it comes to an http(s) URL, else the document's URL."""
    if page.base is not None:
        try:
            return parse_document(parse_http(entities.decode(page.base, True, True).decode(), document))
        except UrlError:
            pass
    return document


def base_href(base: whatwg.URL) -> str:
    """The base as text."""
    return parse_http(str(base), None)


def resolve_one(base: whatwg.URL, raw: bytes | None, decoded: bool) -> str:
    """Resolve one reference to an href; empty if that is impossible or not http(s)."""
    if raw is None:
        return ""
    try:
        return resolve(base, raw, decoded)
    except UrlError:
        return ""


def mark_main(page: PageBase, named: list[int], links: Links) -> None:
    """Mark the links that stand in these lines: by the line in which their text begins, a picture's by the text that
    follows it. O(occurrences + lines)."""
    lines, main, line = page.text.lines, set(named), 0
    for raw, start in page.spots:
        while line < len(lines) and lines[line][0] + lines[line][1] <= start:
            line += 1
        if line in main and raw in links.of_raw:
            links.flags[links.of_raw[raw]] |= IN_MAIN


def finish(page: PageBase, base: whatwg.URL, text: bytes, max_links: int) -> Links:
    """All links of the page up to `MAX_HREFS`. O(bytes of hrefs), duplicates found by hash."""
    links = Links()
    seen: dict[bytes, int] = {}
    anchors: list[RawLink] = []
    length = spent = 0
    for number, raw in enumerate(page.links):
        try:
            href = resolve(base, raw.href, raw.decoded)
        except UnsupportedScheme:
            continue
        except UrlError:
            links.bad += 1
            continue
        spent += len(href)
        if spent > MAX_HREFS:
            links.left_out += len(page.links) - number
            break
        if len(href) > MAX_HREF:
            links.bad += 1
            continue
        start, end = host_span(href)
        key = fingerprint_of(href[start:end], canonical_of(href))
        at = seen.get(key)
        if at == NONE:
            continue
        if at is not None:
            links.of_raw[raw] = at
            if not raw.nofollow:
                links.flags[at] &= 0xFE
            if not raw.in_chrome:
                links.flags[at] &= ~IN_CHROME
            if anchors[at].anchor[0] == anchors[at].anchor[1]:
                anchors[at] = raw
            continue
        if len(anchors) >= max_links:
            links.left_out += 1
            seen[key] = NONE
            continue
        seen[key] = links.of_raw[raw] = len(anchors)
        anchors.append(raw)
        links.host_spans += (length + start, length + end)
        data = href.encode()
        length += len(data)
        links.urls.append(data)
        links.ends.append(length)
        links.keys.append(key)
        links.flags.append(raw.nofollow | raw.kind << 1 | IN_CHROME * raw.in_chrome)
    links.anchors = [collapse(text[link.anchor[0] : link.anchor[1]], MAX_ANCHOR) for link in anchors]
    return links
