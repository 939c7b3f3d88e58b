"""Sitemaps (sitemaps.org 0.9): <urlset>, <sitemapindex> and text lists of one URL per line, read as a stream. Pure.

The root's prefix identifies the protocol's elements, in any namespace. Extensions: news dates are used as
lastmod; titles of news, videos and images as link texts; images and videos are returned separately; hreflang alternates
follow the listed links, since most of them are listed as well. Hosts are not checked: the protocol restricts a sitemap
to its own host, but here the job's scope decides, as for a page.

Invariants: an entry counts once its <loc> is complete, so that a truncated file loses only the last one; at most
`max_urls` entries are held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from nephila.parser.links.link_list import SITEMAP, SITEMAP_INDEX, TEXT_SITEMAP, LinkList, Slices, UnresolvedLink
from nephila.parser.lists.dates import utc_of
from nephila.parser.lists.markup import MAX_TOKENS, PAUSE, TOO_MANY, attributes, decoded_text, tokens

MAX_FIELD_BYTES: Final = 16_384
"""Bytes of a URL as written; references and escapes make it longer than the URL."""

_FORMS: Final = {b"urlset": SITEMAP, b"sitemapindex": SITEMAP_INDEX}
_MAX_NAMES: Final = 1_000

# Kinds of elements.
_RECORD, _LOC, _LASTMOD, _NEWS_DATE, _TITLE, _IMAGE, _VIDEO, _LINK, _TEXT, _OTHER, _PAUSE = range(1, 12)
_OWN: Final = {b"loc": _LOC, b"lastmod": _LASTMOD, b"url": _RECORD, b"sitemap": _RECORD}
_FOREIGN: Final = {
    b"publication_date": _NEWS_DATE,
    b"title": _TITLE,
    b"thumbnail_loc": _IMAGE,
    b"content_loc": _VIDEO,
    b"player_loc": _VIDEO,
    b"link": _LINK,
}
MAX_MEDIA: Final = 10_000
"""Images of one sitemap, and videos."""
MAX_TITLE_CHARS: Final = 1_000


def read_sitemap(pieces: Iterable[bytes], codec: str, max_urls: int, now: float) -> Slices[LinkList]:
    """Read an XML sitemap, one slice per piece. `now` is UTC seconds. O(bytes)."""
    records = _Records(codec, max_urls, now)
    names = _Names()
    kinds = names.known
    fields: dict[int, bytes] = {}
    field, value = 0, b""  # the field that is open, and its text so far
    stream = tokens(pieces)
    for slash, name, raw, text in islice(stream, MAX_TOKENS):
        what = kinds.get(name) or names.learn(name)
        if what == _OTHER:
            field = 0
        elif what == _PAUSE:
            yield
        elif what == _TEXT:
            # A field continues after a CDATA section or comment.
            if field and len(value) < MAX_FIELD_BYTES:
                value += text
        elif what == _RECORD:
            # A new record ends the one before; an open field is complete, since a tag follows it.
            if field:
                fields.setdefault(field, value)
                field = 0
            if fields:
                if not records.add(fields):
                    break
                fields = {}
            if not slash and b"://" in text:
                field, value = _LOC, text  # a URL without <loc>
        elif what == _LINK:
            field = 0
            if not slash:
                records.alternate(raw)
        elif not slash:
            field, value = (what, text) if raw[-1:] != b"/" else (0, b"")
        elif field == what:
            if what in (_IMAGE, _VIDEO):
                records.media(what, value)
            else:
                fields.setdefault(field, value)
            field = 0
    else:
        # The last record may have no end tag: its complete fields count.
        records.add(fields)
    listing = records.end()
    listing.form = names.form
    if not listing.problem and next(stream, None) is not None:
        listing.problem = TOO_MANY
    return listing


class _Names:
    """Kind of each element name seen so far; the prefix of the root decides."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {b"": _TEXT, PAUSE: _PAUSE}
        self.form = SITEMAP
        self._prefix: bytes | None = None

    def learn(self, name: bytes) -> int:
        """Kind of an element name that is new."""
        prefix, colon, local = name.rpartition(b":")
        if self._prefix is None and local in _FORMS:
            self._prefix, self.form = prefix, _FORMS[local]
            what = _OTHER
        elif prefix == self._prefix:
            what = _OWN.get(local, _OTHER)
        elif local == b"loc":
            # The URL of an image; other extensions with a loc are ignored.
            what = _IMAGE if prefix == b"image" else _OTHER
        else:
            what = _FOREIGN.get(local, _OTHER) if colon else _OTHER
        if len(self.known) < _MAX_NAMES and len(name) < 100:
            self.known[name] = what
        return what


class _Records:
    def __init__(self, codec: str, max_urls: int, now: float) -> None:
        self._codec = codec
        self._max_urls = max_urls
        self._now = now
        self._listing = LinkList(SITEMAP)
        self._alternates: dict[str, None] = {}

    def add(self, fields: dict[int, bytes]) -> bool:
        """Add a complete record; False if it exceeds the limit."""
        raw = fields.get(_LOC, b"")
        url = decoded_text(raw, self._codec) if len(raw) <= MAX_FIELD_BYTES else ""
        if not url:
            return True
        if len(self._listing.entries) >= self._max_urls:
            self._listing.problem = f"more than {self._max_urls:,} URLs"
            return False
        date = fields.get(_LASTMOD) or fields.get(_NEWS_DATE)
        lastmod = utc_of(date.decode("latin-1"), self._now) if date else 0.0
        title = fields.get(_TITLE)
        text = decoded_text(title[:MAX_FIELD_BYTES], self._codec)[:MAX_TITLE_CHARS] if title else ""
        self._listing.entries.append(UnresolvedLink(url, lastmod, text))
        return True

    def media(self, what: int, raw: bytes) -> None:
        """Add the URL of an image or video on the page of this record."""
        urls = self._listing.images if what == _IMAGE else self._listing.videos
        url = decoded_text(raw, self._codec) if len(raw) <= MAX_FIELD_BYTES else ""
        if url and len(urls) < MAX_MEDIA:
            urls.append(url)

    def alternate(self, raw: bytes) -> None:
        """<xhtml:link rel="alternate" hreflang="..." href="...">: the same page in another language."""
        if b"alternate" not in raw or len(self._alternates) >= self._max_urls:
            return
        link = attributes(raw)
        url = link.get(b"href", b"")
        if url and len(url) <= MAX_FIELD_BYTES and link.get(b"rel", b"").strip() == b"alternate":
            self._alternates[decoded_text(url, self._codec)] = None

    def end(self) -> LinkList:
        """All links, alternates last."""
        listing = self._listing
        left = self._max_urls - len(listing.entries)
        listing.entries += [UnresolvedLink(url) for url in list(self._alternates)[:left]]
        return listing


def read_text_sitemap(pieces: Iterable[bytes], codec: str, max_urls: int) -> Slices[LinkList]:
    """Read a list of one URL per line; other lines are skipped. One slice per piece. O(bytes)."""
    listing = LinkList(TEXT_SITEMAP)
    for line in islice(_lines(pieces), MAX_TOKENS):
        if line is None:
            yield
            continue
        url = line.decode(codec, "replace").lstrip("\ufeff").strip()
        if not url.lower().startswith(("http://", "https://")):
            continue
        if len(listing.entries) >= max_urls:
            listing.problem = f"more than {max_urls:,} URLs"
            break
        listing.entries.append(UnresolvedLink(url))
    return listing


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes | None]:
    """Lines of at most MAX_FIELD_BYTES, longer ones are dropped; None between two pieces."""
    rest = b""
    for number, piece in enumerate(pieces):
        if number:
            yield None
        *whole, rest = (rest + piece).splitlines() or (b"",)
        # The last line may continue in the next piece.
        yield from (line for line in whole if len(line) <= MAX_FIELD_BYTES)
        rest = rest[: MAX_FIELD_BYTES + 1]
    if len(rest) <= MAX_FIELD_BYTES:
        yield rest
