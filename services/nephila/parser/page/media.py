"""Images and videos of a page with their texts: those in OpenGraph, then <img>, <picture>, <video>, <source> and
embedded players.

Source: P1 finds images and videos by anchor text and caption. Invariants: absolute http(s) URLs, each once, in that
order, at most `MAX_MEDIA` of each kind. Needs a tree, so it is not used in the crawl.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from nephila.native import best_of_srcset
from nephila.parser.page.html_tree import css_first

MAX_MEDIA: Final = 500
"""Of each kind; galleries have a few hundred."""
MAX_ABOVE: Final = 6
"""Ancestors that are searched for a figure or a link."""
MAX_SAID: Final = 500
"""Characters of an alt text or caption."""

_OG_IMAGES: Final = frozenset(("og:image", "og:image:url", "og:image:secure_url", "twitter:image", "twitter:image:src"))
_OG_VIDEOS: Final = frozenset(
    ("og:video", "og:video:url", "og:video:secure_url", "twitter:player:stream", "twitter:player")
)
_LAZY: Final = (
    "src", "data-src", "data-original", "data-lazy-src", "data-lazy", "data-url", "data-image", "data-hi-res-src",
)  # fmt: skip
_LAZY_SETS: Final = ("srcset", "data-srcset", "data-lazy-srcset")
_PLAYERS: Final = re.compile(
    r"(?:youtube(?:-nocookie)?\.com/embed/|player\.vimeo\.com/|dailymotion\.com/embed/|player\.twitch\.tv/"
    r"|fast\.wistia\.(?:net|com)/embed/|players\.brightcove\.net/|player\.bilibili\.com/|v\.qq\.com/txp/iframe"
    r"|player\.youku\.com/embed/|rutube\.ru/play/embed/|facebook\.com/plugins/video|streamable\.com/e/"
    r"|cdn\.jwplayer\.com/players/|ok\.ru/videoembed/|vk\.com/video_ext)"
)
_TOP: Final = ("body", "html", None)


_Element = tuple[Any, dict[str, str | None]]
"""A node and its attributes, which are slow to read."""
_Add = Callable[[str | None, _Element], bool]


class Medium(NamedTuple):
    """One image or video; "" for texts that the page does not have."""

    url: str
    alt: str
    caption: str
    """Caption of the figure around it."""
    anchor: str
    """Target of the link around it."""


def media(
    pairs: Iterable[tuple[str, str]], nodes: Iterable[Any], resolve: Callable[[str], str]
) -> tuple[list[Medium], list[Medium]]:
    """Images and videos. `nodes` are the elements img, source, video, iframe and embed (selectolax) in document order;
    `resolve` makes a URL absolute, "" if it cannot."""
    images: dict[str, Medium] = {}
    videos: dict[str, Medium] = {}
    around: dict[int, tuple[str, str]] = {}
    """Caption and link by node id of the parent: a <picture> has several elements."""

    def said(node: Any, attributes: dict[str, str | None]) -> tuple[str, str, str]:
        alt = attributes.get("alt") or attributes.get("title") or attributes.get("aria-label") or ""
        above = node.parent
        number = 0 if above is None else above.mem_id
        surroundings = around.get(number)
        if surroundings is None:
            surroundings = around[number] = _around(above, resolve)
        return _short(alt), *surroundings

    def add(into: dict[str, Medium], raw: str | None, node: _Element | None) -> bool:
        raw = raw.strip() if raw else ""
        url = resolve(raw) if raw and raw[:5].lower() != "data:" else ""
        if not url:
            return False
        medium = into.get(url)
        if len(into) < MAX_MEDIA if medium is None else node is not None and not any(medium[1:]):
            into[url] = Medium(url, *(("", "", "") if node is None else said(*node)))
        return True

    for name, value in pairs:
        if name in _OG_IMAGES:
            add(images, value, None)
        elif name in _OG_VIDEOS:
            add(videos, value, None)
    image, video = partial(add, images), partial(add, videos)
    for node in nodes:
        _node(node, image, video)
    return list(images.values()), list(videos.values())


def _node(node: Any, image: _Add, video: _Add) -> None:
    attributes = node.attributes
    element = node, attributes
    if node.tag == "img":
        # A lazily loaded image has a data: placeholder in src and its URL in another attribute.
        for name in _LAZY:
            if (raw := attributes.get(name)) and image(raw, element):
                break
        else:
            image(_best_of(attributes), element)
    elif node.tag == "video":
        video(attributes.get("src") or attributes.get("data-src"), element)
        image(attributes.get("poster"), element)
    elif node.tag == "source":
        around = "" if node.parent is None else node.parent.tag
        if around not in ("picture", "video"):
            return
        (video if around == "video" else image)(attributes.get("src") or _best_of(attributes), element)
    else:
        raw = attributes.get("src") or attributes.get("data-src") or ""
        if _PLAYERS.search(raw):
            video(raw, element)


def _best_of(attributes: dict[str, str | None]) -> str:
    return next((best for name in _LAZY_SETS if (best := best_of_srcset(attributes.get(name) or ""))), "")


def _around(above: Any, resolve: Callable[[str], str]) -> tuple[str, str]:
    """Caption of the figure and target of the link around an element; `above` is its parent."""
    caption = anchor = ""
    for _ in range(MAX_ABOVE):
        tag = None if above is None else above.tag
        if tag in _TOP:
            break
        if tag == "a" and not anchor:
            anchor = resolve(above.attributes.get("href") or "")
        elif tag == "figure":
            figcaption = css_first(above, "figcaption")
            caption = "" if figcaption is None else _short(figcaption.text())
            break
        above = above.parent
    return caption, anchor


def _short(text: str) -> str:
    return " ".join(text[: 4 * MAX_SAID].split())[:MAX_SAID] if text else ""
