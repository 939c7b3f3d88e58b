"""Detection of lists of links - sitemaps and feeds - and the choice of their reader. Pure.

The root element decides, not the content type: sitemaps are served as text/html, feeds as text/plain, both in gzip
under any name. Only the name identifies a text sitemap. Invariants: for an HTML page only the first bytes are examined;
at most `max_list_bytes` of a list are decompressed, one piece at a time.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import webencodings

from nephila.kernel.gzip_member import RAW_DEFLATE, TRAILER_BYTES, data_start
from nephila.parser.config import ParserConfig
from nephila.parser.links.link_list import LinkList, Slices
from nephila.parser.lists.feeds import read_feed, read_json_feed
from nephila.parser.lists.markup import tokens
from nephila.parser.lists.sitemaps import read_sitemap, read_text_sitemap
from nephila.parser.page.charset import Classify, classify, encoding_of_text

HEAD_BYTES: Final = 4096
"""Bytes in which the root element is searched: declarations, style sheets and comments precede it."""
LOOK_BYTES: Final = 64 * 1024
"""Bytes from which the encoding is determined."""
PIECE_BYTES: Final = 128 * 1024
"""Bytes per slice: at most 5 to 30 ms for any content."""
INPUT_BYTES: Final = 64 * 1024
"""Compressed bytes per step: zlib copies the unused input at every step."""
MAX_MEMBERS: Final = 1_000
"""A gzip file has one member or a few; a million empty ones are an attack."""

_GZIP: Final = b"\x1f\x8b\x08"
_MAY_BE_LIST: Final = re.compile(
    rb"""(?:\xef\xbb\xbf)?\s*+<(?:\?xml|!--
    |!doctype\s++(?:rss|rdf|feed|urlset)|(?:[\w.-]++:)?(?:urlset|sitemapindex|rss|feed|rdf)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_TEXT_TYPES: Final = frozenset(("text/plain", "", "application/octet-stream"))
_RSS_IN_RDF: Final = (b"purl.org/rss/", b"netscape.com/rdf/")
# Encodings whose characters may hold bytes that look like markup.
_WIDE: Final = frozenset(("utf-16le", "utf-16be", "iso-2022-jp"))


class ListForm(IntEnum):
    SITEMAP = 1
    TEXT_SITEMAP = 2
    FEED = 3
    JSON_FEED = 4


_ROOTS: Final = {
    b"urlset": ListForm.SITEMAP,
    b"sitemapindex": ListForm.SITEMAP,
    b"rss": ListForm.FEED,
    b"feed": ListForm.FEED,
    b"rdf": ListForm.FEED,
}


def form_of(content_type: str, url: str, body: bytes) -> ListForm | None:
    """Format of the list in a body; None for any other body. `content_type`: media type in lower case. O(1)."""
    if _MAY_BE_LIST.match(body, 0, HEAD_BYTES):
        return _by_root(body[:HEAD_BYTES])
    head = body[:4]
    if head[:3] == _GZIP:
        return _by_text(url, _first_bytes(body, HEAD_BYTES))
    if _is_wide(head):
        text = _to_utf8(body[:HEAD_BYTES])
        return _by_root(text) if _MAY_BE_LIST.match(text) else None
    if content_type.endswith("json"):
        return ListForm.JSON_FEED if _is_json_feed(content_type, body[:HEAD_BYTES]) else None
    if content_type in _TEXT_TYPES and body[:HEAD_BYTES].lstrip()[:1] != b"<" and _names_text_sitemap(url):
        return ListForm.TEXT_SITEMAP
    return None


def _is_wide(head: bytes) -> bool:
    """Whether a body starts like UTF-16: with a byte order mark or a zero."""
    return head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:2]


def _to_utf8(head: bytes) -> bytes:
    codec = "utf-16" if head[0] > 0xF0 else "utf-16-be" if head[0] == 0 else "utf-16-le"
    return head.decode(codec, "replace").lstrip("\ufeff").encode("utf-8", "replace")


def _by_text(url: str, head: bytes) -> ListForm | None:
    head = _to_utf8(head) if _is_wide(head) else head
    if _MAY_BE_LIST.match(head):
        return _by_root(head)
    return ListForm.TEXT_SITEMAP if head and _names_text_sitemap(url) else None


def _names_text_sitemap(url: str) -> bool:
    name = url.partition("?")[0].rpartition("/")[2].lower()
    return name.endswith((".txt", ".txt.gz")) and ("sitemap" in name or name.startswith("urllist."))


def _by_root(head: bytes) -> ListForm | None:
    for slash, name, _, _ in tokens((head,)):
        if name:
            local = name.rpartition(b":")[2].lower()
            if slash or (local == b"rdf" and not any(mark in head for mark in _RSS_IN_RDF)):
                return None
            return _ROOTS.get(local)
    return None


def _is_json_feed(content_type: str, head: bytes) -> bool:
    return content_type == "application/feed+json" or b"jsonfeed.org" in head


def _first_bytes(body: bytes, most: int) -> bytes:
    start = body[: 4 * most]
    try:
        return zlib.decompressobj(RAW_DEFLATE).decompress(start[data_start(start) :], most)
    except (zlib.error, ValueError):
        return b""


def read(
    form: ListForm,
    body: bytes,
    url: str,
    charset: str,
    config: ParserConfig,
    now: float,
    classify: Classify = classify,
) -> Slices[LinkList]:
    """Read the list at `url`, in slices; `charset` is the header's, `now` UTC seconds. Never fails. O(decompressed
    bytes)."""
    pieces = _Pieces(body, config.max_list_bytes)
    head = _first_bytes(body, LOOK_BYTES) if pieces.packed else body[:LOOK_BYTES]
    if form is ListForm.JSON_FEED:
        listing = read_json_feed(b"".join(pieces), config.max_links, now)
    else:
        content_type = "text/plain" if form is ListForm.TEXT_SITEMAP else "application/xml"
        encoding = encoding_of_text(head, charset, content_type, classify)
        codec = webencodings.lookup(encoding).codec_info.name
        source: Iterator[bytes] = iter(pieces)
        if encoding in _WIDE:
            source, codec = _recoded(source, codec), "utf-8"
        if form is ListForm.FEED:
            listing = yield from read_feed(source, codec, url, config.max_links, now)
        elif form is ListForm.SITEMAP:
            listing = yield from read_sitemap(source, codec, config.max_list_urls, now)
        else:
            listing = yield from read_text_sitemap(source, codec, config.max_list_urls)
    listing.problem = listing.problem or pieces.problem
    return listing


class _Pieces:
    """A body in pieces, decompressed if it is gzip. A broken or too long body ends early; `problem` has the reason."""

    def __init__(self, body: bytes, max_bytes: int) -> None:
        self._body = body
        self._left = max_bytes
        self._max_bytes = max_bytes
        self.packed = body[:3] == _GZIP
        self.problem = ""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._inflated() if self.packed else self._cut():
            if len(piece) > self._left:
                self.problem = f"more than {self._max_bytes:,} bytes"
                yield piece[: self._left]
                return
            self._left -= len(piece)
            yield piece

    def _cut(self) -> Iterator[bytes]:
        for at in range(0, len(self._body), PIECE_BYTES):
            yield self._body[at : at + PIECE_BYTES]

    def _inflated(self) -> Iterator[bytes]:
        """The members of a gzip file; garbage after them is ignored."""
        body, at = self._body, 0
        try:
            for _ in range(MAX_MEMBERS):
                at = data_start(body, at)
                if at < 0:
                    break
                inflater = zlib.decompressobj(RAW_DEFLATE)
                while not inflater.eof and (rest := inflater.unconsumed_tail or body[at : at + INPUT_BYTES]):
                    at += 0 if inflater.unconsumed_tail else len(rest)
                    if piece := inflater.decompress(rest, PIECE_BYTES):
                        yield piece
                if not inflater.eof:
                    break
                at += TRAILER_BYTES - len(inflater.unused_data)
                if body[at : at + 2] != _GZIP[:2]:
                    return
            else:
                return
        except (zlib.error, ValueError) as error:
            self.problem = f"broken gzip stream: {error}"
            return
        self.problem = "the gzip stream ends early"


def _recoded(pieces: Iterator[bytes], codec: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(codec)("replace")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode()
