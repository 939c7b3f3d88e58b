"""Packed link buffers read back as Python objects: for people and tests, not for the hot path."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from nephila.kernel.linkplaces import PLACES
from nephila.parser.passes import PagePass

KINDS: Final = ("a", "area", "iframe", "frame", "link", "refresh", "sitemap", "guess")
"""By bits 1-3 of a link's flags."""


class Link(NamedTuple):
    """One link of a page."""

    url: str
    text: str
    nofollow: bool
    kind: str
    """What it stands in: one of `KINDS`."""
    place: str
    """Which part of the page it stands in: main, nav or other (`kernel.linkplaces`)."""


def unpack(found: PagePass) -> Iterator[Link]:
    """The links in document order. O(bytes)."""
    urls, anchors, flags = found.link_urls, found.anchors, found.link_flags
    ends = struct.Struct(f"<{len(flags)}I").unpack
    url_at = anchor_at = 0
    for flag, url_end, anchor_end in zip(flags, ends(found.link_ends), ends(found.anchor_ends), strict=True):
        text = anchors[anchor_at:anchor_end].decode("utf-8", "replace")
        if not (text.isascii() and text.isprintable()):
            # Space as HTML knows it is collapsed already, space as Unicode knows it is not.
            text = " ".join(text.split())
        url = urls[url_at:url_end].decode("utf-8", "replace")
        yield Link(url, text, bool(flag & 1), KINDS[flag >> 1 & 7], PLACES[flag])
        url_at, anchor_at = url_end, anchor_end
