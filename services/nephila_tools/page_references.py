"""What the bodies that a crawl has kept refer to: pictures, styles and scripts of pages, and places within pages.

Two passes over the bodies: the first gathers references, the second looks for the places that they name. Memory grows
with the references, not with the bodies. Of a page that was fetched several times the last body counts.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
from nephila.kernel.fragment_routes import is_route
from nephila.native import (
    PagePass,
    PassOptions,
    UrlError,
    page_pass,
    parse_any,
    parse_url,
    query_in,
    sniff_encoding,
    to_utf8,
)
from nephila.parser.links.requisites import requisites_of_page
from nephila.parser.page.body_kind import HEAD_BYTES, BodyKind, kind_of
from nephila.parser.page.charset import encoding_of
from nephila.parser.page.html_tree import css, html_tree, tree_is_linear
from nephila.parser.page.text import one_line
from nephila_rules.stored_pages import StoredPage, stored_pages

MAX_ANCHOR_CHARS = 200
DIRECTIVE = ":~:"
"""Begins the part of a fragment that names a text."""


class PlaceLink(NamedTuple):
    """A link to a place within a page."""

    page: str
    """URL of the page that has the link."""
    url: str
    """With its fragment."""
    target: str
    """Key of the page that it leads to."""
    fragment: str
    anchor: str


class References(msgspec.Struct):
    """References of all pages."""

    requisites: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Page → URLs of its requisites."""
    places: dict[str, list[PlaceLink]] = msgspec.field(default_factory=dict)
    """Page → its links to places."""
    pages: int = 0
    """Pages that were read."""
    unread: int = 0
    """Pages whose tree would cost too much."""


class _Read(NamedTuple):
    page: StoredPage
    found: PagePass
    encoding: str
    tree: Any


def references_of(directory: Path, *, requisites: bool, places: bool) -> References:
    """References of the kept pages of a crawl. Raises `UserError` if it has kept none. O(bytes)."""
    all_of = References()
    for read in _pages(directory, all_of):
        all_of.pages += 1
        url = read.page.url
        if requisites:
            urls = (_resolved(entry.url, read) for entry in requisites_of_page(read.tree))
            all_of.requisites[url] = list(dict.fromkeys(filter(None, urls)))
        if places:
            all_of.places[url] = list(dict.fromkeys(_place_links(read)))
    return all_of


def missing_places(directory: Path, fragments: dict[str, set[str]]) -> tuple[dict[str, set[str]], set[str]]:
    """The fragments by page key that no element of the page has, and the keys of the pages that were read."""
    missing, keys = {}, set()
    for read in _pages(directory, References(), fragments):
        key = parse_url(read.page.url).fingerprint.hex()
        keys.add(key)
        names = {node.attributes["id"] for node in css(read.tree.root, "[id]")}
        names |= {node.attributes["name"] for node in css(read.tree.root, "a[name]")}
        missing[key] = {
            fragment for fragment in fragments[key] if fragment not in names and unquote(fragment) not in names
        }
    return missing, keys


def _pages(directory: Path, counts: References, keys: Container[str] | None = None) -> Iterator[_Read]:
    """The HTML pages, or those with these keys."""
    for page in stored_pages(directory):
        kind, _ = kind_of(page.content_type, page.body[:HEAD_BYTES])
        try:
            if kind is not BodyKind.HTML or (keys is not None and parse_url(page.url).fingerprint.hex() not in keys):
                continue
        except UrlError:
            continue
        encoding = encoding_of(page.body, page.charset, sniff_encoding)
        facts = page_pass(page.body, page.url, encoding, PassOptions(max_links=0, max_text_bytes=0, main_text=False))
        if tree_is_linear(page.body, facts.depth):
            yield _Read(page, facts, encoding, html_tree(to_utf8(page.body, encoding)))
        else:
            counts.unread += 1


def _resolved(reference: str, read: _Read) -> str:
    try:
        return parse_url(query_in(reference, read.encoding), read.found.base).href
    except UrlError:
        return ""


def _place_links(read: _Read) -> Iterator[PlaceLink]:
    for node in css(read.tree.root, "a[href*='#'], area[href*='#']"):
        reference = node.attributes["href"] or ""
        try:
            url = parse_any(query_in(reference.strip(), read.encoding), read.found.base)
            target = parse_url(url).fingerprint.hex()
        except UrlError:
            continue
        fragment = url.partition("#")[2].partition(DIRECTIVE)[0]
        # "top" is a place of every page, and a route is no place.
        if fragment and fragment.lower() != "top" and not is_route(fragment):
            yield PlaceLink(read.page.url, url, target, fragment, one_line(node.text())[:MAX_ANCHOR_CHARS])
