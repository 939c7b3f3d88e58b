"""Images and videos of a page: what OpenGraph names, then <img>, <video>, <source> and embedded players of the tree.

Invariant: absolute http(s) URLs, each once, in that order, at most `MAX_MEDIA` of each. It reads a tree, which the hot
path never builds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

MAX_MEDIA: Final = 500
"""Of each kind; galleries have a few hundred."""

_OG_IMAGES: Final = frozenset(("og:image", "og:image:url", "og:image:secure_url", "twitter:image", "twitter:image:src"))
_OG_VIDEOS: Final = frozenset(("og:video", "og:video:url", "og:video:secure_url", "twitter:player:stream"))
_LAZY: Final = ("src", "data-src", "data-original", "data-lazy-src")
_PLAYERS: Final = ("youtube.com/embed/", "youtube-nocookie.com/embed/", "player.vimeo.com/", "dailymotion.com/embed/")


def media(pairs: Iterable[tuple[str, str]], tree: Any, resolve: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """Images and videos. `tree` has selectolax' `css`, or is None; `resolve` makes a URL absolute, "" if it cannot."""
    images: dict[str, None] = {}
    videos: dict[str, None] = {}

    def add(into: dict[str, None], raw: str | None) -> bool:
        url = resolve(raw.strip()) if raw and raw.lstrip()[:5].lower() != "data:" else ""
        if url and len(into) < MAX_MEDIA:
            into[url] = None
        return bool(url)

    for name, value in pairs:
        if name in _OG_IMAGES:
            add(images, value)
        elif name in _OG_VIDEOS:
            add(videos, value)
    if tree is None:
        return list(images), list(videos)
    for node in tree.css("img, picture > source, video, video > source, iframe"):
        attributes = node.attributes
        if node.tag == "img":
            # A lazy image carries a data: placeholder in src and its address beside it.
            if not any(add(images, attributes.get(name)) for name in _LAZY):
                add(images, first_of_srcset(attributes.get("srcset")))
        elif node.tag == "video":
            add(videos, attributes.get("src"))
            add(images, attributes.get("poster"))
        elif node.tag == "source":
            is_video = node.parent is not None and node.parent.tag == "video"
            raw = attributes.get("src") or first_of_srcset(attributes.get("srcset"))
            add(videos if is_video else images, raw)
        elif any(player in (attributes.get("src") or "") for player in _PLAYERS):
            add(videos, attributes.get("src"))
    return list(images), list(videos)


def first_of_srcset(srcset: str | None) -> str:
    """The first candidate's URL of a srcset attribute; "" without one."""
    words = (srcset or "").split(None, 1)
    return words[0].rstrip(",") if words else ""
