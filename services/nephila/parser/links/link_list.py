"""Lists of links (of a sitemap, a feed or a page), resolved and packed into `Outlinks` messages.

Invariants: a URL occurs once in all messages of a list, in the order of the list; a message has at most
LINKS_PER_MESSAGE links, because the scheduler processes one message per turn of its loop.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec

from nephila.kernel import messages as m
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.pages.chosen_links import only
from nephila.native import UrlError, parse_url
from nephila.parser.page.text import cut_utf8

T = TypeVar("T")
Slices = Generator[None, None, T]
"""Cooperative work: a generator that yields between slices of some milliseconds and returns its result."""

LINKS_PER_MESSAGE: Final = 2_000
ENTRIES_PER_SLICE: Final = 2_000
MAX_URL_CHARS: Final = 8192
"""The limit of servers; the same as for links of a page."""
MAX_ANCHOR_BYTES: Final = 200
KIND_REFRESH: Final = 5 << 1
KIND_SITEMAP: Final = 6 << 1
"""Flags of a link in a sitemap index, which is a sitemap itself. Bits 1-3 are the kind; 0-5 are those of a page."""

NOFOLLOW: Final = 1
"""Flag of a link marked nofollow, ugc or sponsored."""

SITEMAP: Final = "sitemap"
SITEMAP_INDEX: Final = "sitemap index"
TEXT_SITEMAP: Final = "text sitemap"
SITEMAPS: Final = (SITEMAP, SITEMAP_INDEX, TEXT_SITEMAP)


class UnresolvedLink(NamedTuple):
    url: str
    """As written; relative to `base`."""
    lastmod: float = 0.0
    """Seconds since 1970 UTC; 0: not stated."""
    title: str = ""
    base: str = ""
    """Absolute URL; "": the URL of the list."""


class LinkList(msgspec.Struct):
    form: str
    """One of the constants above, or the kind of feed: rss, atom, rdf, json."""
    title: str = ""
    entries: list[UnresolvedLink] = msgspec.field(default_factory=list)
    images: list[str] = msgspec.field(default_factory=list)
    """URLs of images on the listed pages, as written."""
    videos: list[str] = msgspec.field(default_factory=list)
    problem: str = ""
    """Why the list may have more links, for people; "" if all were read."""

    @property
    def source(self) -> m.LinkSource:
        """The source of the links, for the scheduler."""
        return m.LinkSource.SITEMAP if self.form in SITEMAPS else m.LinkSource.FEED


class ResolvedLink(NamedTuple):
    href: bytes
    host: tuple[int, int]
    """Start and end of its host key."""
    fingerprint: bytes
    anchor: bytes
    lastmod: float


def run_to_end(slices: Slices[T]) -> T:
    """Run all slices at once; returns the result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result


def resolve(own: str, entries: list[UnresolvedLink], *, routes: bool = False) -> Slices[list[ResolvedLink]]:
    """Resolve the links of a list at URL `own`; each fingerprint once, only http(s). `routes`: the part after "#/" or
    "#!" belongs to the URL (`kernel.fragment_routes`).

    O(entries); 50,000 URLs cost the Rust core about 60 ms, in slices of ENTRIES_PER_SLICE.
    """
    rows: dict[bytes, ResolvedLink] = {}
    parse = parse_routed if routes else parse_url
    with_userinfo = "@" in own
    for number, (url, lastmod, title, base) in enumerate(entries):
        if number % ENTRIES_PER_SLICE == ENTRIES_PER_SLICE - 1:
            yield
        if len(url) > MAX_URL_CHARS:
            continue
        try:
            # An absolute URL without userinfo needs no base; parsing the base costs as much as the URL.
            alone = url[:4] == "http" and not with_userinfo and "@" not in url
            if "@" in base:  # xml:base: a document must not set credentials
                base = parse_url(base, own).href
            parts = parse(url) if alone else parse(url, base or own)
        except UrlError:
            continue
        key, href = parts.fingerprint, parts.href
        if key in rows or len(href) > MAX_URL_CHARS:
            continue
        end = href.index("/", len(parts.scheme) + 3)
        anchor = cut_utf8(" ".join(title.split()).encode("utf-8", "replace"), MAX_ANCHOR_BYTES) if title else b""
        rows[key] = ResolvedLink(href.encode(), (end - len(parts.host_key), end), key, anchor, lastmod)
    return list(rows.values())


def hash_of_links(rows: list[ResolvedLink]) -> bytes:
    """`Record.text_hash` of a list, over its URLs and dates; empty for an empty list.

    A recrawl compares it: a new comment or build date in a sitemap or feed is no change.
    """
    if not rows:
        return b""
    sha = hashlib.sha256(b"".join([row.fingerprint for row in rows]))
    sha.update(struct.pack(f"<{len(rows)}d", *[row.lastmod for row in rows]))
    return sha.digest()[:8]


def list_messages(
    page: m.Page, listing: LinkList, rows: list[ResolvedLink], per_message: int = LINKS_PER_MESSAGE
) -> Iterator[m.Outlinks]:
    """The links as messages of at most `per_message`, made lazily. O(bytes).

    Their depth is that of the list: a list given as a seed stands for its links, and --max-depth 0 fetches exactly
    these.
    """
    flag = KIND_SITEMAP if listing.form == SITEMAP_INDEX else 0
    for at in range(0, len(rows), per_message):
        yield pack(page, rows[at : at + per_message], page.depth, listing.source, flag)


def without_nofollow(links: m.Outlinks) -> m.Outlinks:
    """The message without links marked nofollow, ugc or sponsored. O(bytes)."""
    chosen = [i for i, flags in enumerate(links.flags) if not flags & NOFOLLOW]
    return links if len(chosen) == len(links.flags) else only(links, chosen)


def link_context(page: m.Page) -> m.Context | None:
    """The context of the links of a page: a page cannot make the crawler send a form."""
    context = page.context
    return context if context is None or not context.form else msgspec.structs.replace(context, form=False)


def pack(page: m.Page, rows: list[ResolvedLink], depth: int, source: m.LinkSource, flag: int = 0) -> m.Outlinks:
    """One message of links at `depth`. O(bytes)."""
    count = len(rows)
    ends: list[int] = []
    spans: list[int] = []
    anchor_ends: list[int] = []
    end = anchor_end = 0
    for row in rows:
        spans += (end + row.host[0], end + row.host[1])
        end += len(row.href)
        ends.append(end)
        anchor_end += len(row.anchor)
        anchor_ends.append(anchor_end)
    dated = any(row.lastmod for row in rows)
    return m.Outlinks(
        job=page.job,
        parent_key=page.url_key,
        parent_url=page.url,
        depth=depth,
        fingerprints=b"".join([row.fingerprint for row in rows]),
        urls=b"".join([row.href for row in rows]),
        url_ends=struct.pack(f"<{count}I", *ends),
        host_spans=struct.pack(f"<{2 * count}I", *spans),
        anchors=b"".join([row.anchor for row in rows]),
        anchor_ends=struct.pack(f"<{count}I", *anchor_ends),
        flags=bytes((flag,)) * count,
        lastmods=struct.pack(f"<{count}d", *[row.lastmod for row in rows]) if dated else b"",
        source=source,
        parent_priority=page.priority,
        context=link_context(page),
    )
