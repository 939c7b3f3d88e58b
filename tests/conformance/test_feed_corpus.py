"""Feeds of feedparser's own test suite: our entries' links and dates are those that feedparser finds.

1,851 files, most of them with one oddity each: namespaces, bases, encodings, ill-formed ones. What differs is listed
with its reason; a name listed here that no longer differs fails the test.
"""

from __future__ import annotations

import calendar
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nephila.native import UrlError, parse_url
from nephila.parser.config import ParserConfig
from nephila.parser.links.link_list import resolve, run_to_end
from nephila.parser.lists.detection import form_of, read

pytestmark = pytest.mark.conformance

URL = "http://127.0.0.1:8097/"
NOW = 1_900_000_000.0
CONFIG = ParserConfig()
Links = dict[str, float]

KNOWN = {
    "an entry without an address of its own is none to follow: feedparser resolves an id that is no URL": """
        atom10/entry_id_with_attributes.xml node_precedence/atom10_id.xml base/http_entry_id_base_docuri.xml
        base/http_entry_id_base_content_location.xml lang/http_content_language_entry_title_inherit_2.xml
    """,
    "rdf:about is the address where there is no <link>": """
        illformed/rdf_channel_empty_textinput.xml rdf/rdf_item_description.xml rdf/rdf_item_rdf_about.xml
        rdf/rdf_item_title.xml
    """,
    "Channel Definition Format, 1997: not read": """
        base/cdf_item_abstract_xml_base.xml cdf/item_href_map_link.xml cdf/item_href_map_links.xml
    """,
}


def feeds(data: Path) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every file."""
    with tarfile.open(data / "feeds-feedparser" / "feeds.tar.xz") as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                yield "/".join(Path(member.name).parts[-2:]), stream.read()


def ours(body: bytes) -> Links | None:
    """Address and date of our entries; None when it is no feed to us."""
    form = form_of("application/xml", URL, body)
    if form is None:
        return None
    listing = run_to_end(read(form, body, URL, "", CONFIG, NOW))
    return {row.href.decode(): row.lastmod for row in run_to_end(resolve(URL, listing.entries))}


def theirs(feedparser: Any, body: bytes) -> Links:
    """Address and latest date of feedparser's entries, addresses as we write them."""
    found: Links = {}
    for entry in feedparser.parse(body, response_headers={"content-location": URL}).entries:
        dates = [entry.get(name) for name in ("published_parsed", "updated_parsed", "created_parsed")]
        latest = max((calendar.timegm(date) for date in dates if date), default=0)
        try:
            href = parse_url(entry.get("link") or "", URL).href if entry.get("link") else ""
        except UrlError:
            continue
        if href:
            found[href] = max(found.get(href, 0.0), float(latest))
    return found


def test_links_and_dates_are_feedparsers(conformance_data: Path) -> None:
    """The same set of addresses, each with the same second, but for those listed."""
    feedparser = pytest.importorskip("feedparser", reason="the rival is not installed")
    count = linked = dated = 0
    differ = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, body in feeds(conformance_data):
            count += 1
            mine, other = ours(body), theirs(feedparser, body)
            if mine is None:
                mine = {}
            linked += bool(mine)
            dated += any(mine.values())
            if mine.keys() != other.keys() or any(abs(mine[url] - other[url]) >= 1 for url in mine):
                differ.add(name)
    print(f"feeds: {count - len(differ)}/{count} as feedparser, {linked} with links, {dated} with dates")
    assert sorted(differ) == sorted(name for names in KNOWN.values() for name in names.split())
    assert count > 1_800


def test_torn_feeds_never_fail(conformance_data: Path) -> None:
    """Every file cut in half, and with a byte of it turned: links or none, no error."""
    for number, (_, body) in enumerate(feeds(conformance_data)):
        place = (number * 7919) % max(len(body), 1)
        for broken in (body[: len(body) // 2], body[:place] + b"\xff" + body[place + 1 :]):
            found = ours(broken)
            assert found is None or all(url.startswith("http") for url in found)
