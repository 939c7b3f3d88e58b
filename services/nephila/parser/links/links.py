"""Packed link buffers as Python objects: for people and tests, not for the hot path."""

from __future__ import annotations

import struct
from typing import Final, TypedDict

from nephila.kernel.pages.link_position import POSITIONS
from nephila.native import PagePass

KINDS: Final = ("a", "area", "iframe", "frame", "link", "refresh", "sitemap", "guess")
"""By bits 1-3 of a link's flags."""


class PageLink(TypedDict):
    """One link of a page."""

    url: str
    text: str
    nofollow: bool
    kind: str
    """Element of the link: one of `KINDS`."""
    place: str
    """Which part of the page it stands in: main, nav or other (`kernel.linkplaces`)."""


def unpack(page_pass: PagePass) -> list[PageLink]:
    """The links in document order. O(bytes)."""
    flags, anchors = page_pass.link_flags, page_pass.anchors
    urls, texts = _cut(page_pass.link_urls, page_pass.link_ends), _cut(anchors, page_pass.anchor_ends)
    if not (anchors.isascii() and anchors.decode("ascii").isprintable()):
        # HTML white space is collapsed already, Unicode white space is not.
        texts = [text if text.isascii() and text.isprintable() else " ".join(text.split()) for text in texts]
    return [
        {"url": url, "text": text, "nofollow": flag & 1 == 1, "kind": KINDS[flag >> 1 & 7], "place": POSITIONS[flag]}
        for url, text, flag in zip(urls, texts, flags, strict=True)
    ]


def _cut(packed: bytes, ends: bytes) -> list[str]:
    stops = struct.unpack(f"<{len(ends) // 4}I", ends)
    spans = zip((0, *stops), stops, strict=False)
    if packed.isascii():
        whole = packed.decode("ascii")
        return [whole[start:stop] for start, stop in spans]
    return [packed[start:stop].decode("utf-8", "replace") for start, stop in spans]
