"""Sitemaps (sitemaps.org 0.9): <urlset>, <sitemapindex> and lists of one URL a line, read as a stream. Pure.

The root's prefix tells which names are the protocol's own, whatever namespace it claims. Of the extensions: news dates
count as lastmod, the titles of news, videos and pictures as what a link says; pictures and videos are given apart;
hreflang alternates are links behind those listed themselves, since most are listed as well. Nothing is said of hosts:
the protocol bids a sitemap stay on its own, and whether a link is inside is the job's scope to decide, as it is for a
page.

Invariant: an entry counts once its <loc> is whole, so that a torn end costs the last one only; at most `max_urls`
entries are held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from nephila.parser.links.link_list import SITEMAP, SITEMAP_INDEX, TEXT_SITEMAP, LinkList, Slices, UnresolvedLink
from nephila.parser.lists.dates import utc_of
from nephila.parser.lists.markup import MAX_TOKENS, PAUSE, TOO_MANY, attributes, decoded_text, tokens

MAX_FIELD_BYTES: Final = 16_384
"""Of a URL as written: references and escapes make it longer than what it stands for."""

_FORMS: Final = {b"urlset": SITEMAP, b"sitemapindex": SITEMAP_INDEX}
_MAX_NAMES: Final = 1_000

# What an element is to us.
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
"""Pictures and videos of one sitemap that are told, of each."""
MAX_TITLE_CHARS: Final = 1_000


def read_sitemap(pieces: Iterable[bytes], codec: str, max_urls: int, now: float) -> Slices[LinkList]:
    """What an XML sitemap lists, in slices of a piece. `now` is UTC seconds. O(bytes)."""
    records = _Records(codec, max_urls, now)
    names = _Names()
    known = names.known
    fields: dict[int, bytes] = {}
    field, value = 0, b""  # the field that is open, and its text so far
    stream = tokens(pieces)
    for slash, name, raw, text in islice(stream, MAX_TOKENS):
        what = known.get(name) or names.learn(name)
        if what == _OTHER:
            field = 0
        elif what == _PAUSE:
            yield
        elif what == _TEXT:
            # A field goes on behind a CDATA section or comment.
            if field and len(value) < MAX_FIELD_BYTES:
                value += text
        elif what == _RECORD:
            # A record that begins ends the one before; and since a tag follows, an open field is whole.
            if field:
                fields.setdefault(field, value)
                field = 0
            if fields:
                if not records.add(fields):
                    break
                fields = {}
            if not slash and b"://" in text:
                field, value = _LOC, text  # without a <loc>
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
        # The last record has no end of its own: what it has of whole fields counts.
        records.add(fields)
    listing = records.end()
    listing.form = names.form
    if not listing.problem and next(stream, None) is not None:
        listing.problem = TOO_MANY
    return listing


class _Names:
    """Names of elements, as far as they were met, and what each is; the prefix of the root decides."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {b"": _TEXT, PAUSE: _PAUSE}
        self.form = SITEMAP
        self._prefix: bytes | None = None

    def learn(self, name: bytes) -> int:
        """What an element is that was not met before."""
        prefix, colon, local = name.rpartition(b":")
        if self._prefix is None and local in _FORMS:
            self._prefix, self.form = prefix, _FORMS[local]
            what = _OTHER
        elif prefix == self._prefix:
            what = _OWN.get(local, _OTHER)
        elif local == b"loc":
            # A picture's address; any other extension that has such a thing is none of ours.
            what = _IMAGE if prefix == b"image" else _OTHER
        else:
            what = _FOREIGN.get(local, _OTHER) if colon else _OTHER
        if len(self.known) < _MAX_NAMES and len(name) < 100:
            self.known[name] = what
        return what


class _Records:
    """The entries read so far."""

    def __init__(self, codec: str, max_urls: int, now: float) -> None:
        self._codec = codec
        self._max_urls = max_urls
        self._now = now
        self._listing = LinkList(SITEMAP)
        self._alternates: dict[str, None] = {}

    def add(self, fields: dict[int, bytes]) -> bool:
        """A record is complete; False when it is one too many."""
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
        said = decoded_text(title[:MAX_FIELD_BYTES], self._codec)[:MAX_TITLE_CHARS] if title else ""
        self._listing.entries.append(UnresolvedLink(url, lastmod, said))
        return True

    def media(self, what: int, raw: bytes) -> None:
        """The address of a picture or a video on the page of this record."""
        found = self._listing.images if what == _IMAGE else self._listing.videos
        url = decoded_text(raw, self._codec) if len(raw) <= MAX_FIELD_BYTES else ""
        if url and len(found) < MAX_MEDIA:
            found.append(url)

    def alternate(self, raw: bytes) -> None:
        """<xhtml:link rel="alternate" hreflang="..." href="...">: the same page in another language."""
        if b"alternate" not in raw or len(self._alternates) >= self._max_urls:
            return
        found = attributes(raw)
        url = found.get(b"href", b"")
        if url and len(url) <= MAX_FIELD_BYTES and found.get(b"rel", b"").strip() == b"alternate":
            self._alternates[decoded_text(url, self._codec)] = None

    def end(self) -> LinkList:
        """All there was, alternates last."""
        listing = self._listing
        left = self._max_urls - len(listing.entries)
        listing.entries += [UnresolvedLink(url) for url in list(self._alternates)[:left]]
        return listing


def read_text_sitemap(pieces: Iterable[bytes], codec: str, max_urls: int) -> Slices[LinkList]:
    """One URL a line; lines that begin otherwise are no URLs. In slices of a piece. O(bytes)."""
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
    """Lines of at most MAX_FIELD_BYTES, a longer one in no useful form; None between two pieces."""
    rest = b""
    for number, piece in enumerate(pieces):
        if number:
            yield None
        *whole, rest = (rest + piece).splitlines() or (b"",)
        # The last line may go on in the next piece.
        yield from (line for line in whole if len(line) <= MAX_FIELD_BYTES)
        rest = rest[: MAX_FIELD_BYTES + 1]
    if len(rest) <= MAX_FIELD_BYTES:
        yield rest
