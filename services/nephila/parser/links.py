"""Packed link buffers read back as Python objects: for people and tests, not for the hot path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

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


def unpack(found: PagePass) -> Iterator[Link]:
    """The links in document order. O(bytes)."""
    urls, anchors, flags = found.link_urls, found.anchors, found.link_flags
    url_at = anchor_at = 0
    for flag, url_end, anchor_end in zip(flags, _ends(found.link_ends), _ends(found.anchor_ends), strict=True):
        text = anchors[anchor_at:anchor_end].decode("utf-8", "replace")
        yield Link(
            urls[url_at:url_end].decode("utf-8", "replace"),
            " ".join(text.split()),
            bool(flag & 1),
            KINDS[flag >> 1 & 7],
        )
        url_at, anchor_at = url_end, anchor_end


def _ends(packed: bytes) -> Iterator[int]:
    """Little-endian uint32, whatever the machine's order."""
    return (int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4))
