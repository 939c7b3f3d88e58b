"""Requisites of a page and of a style: the URLs that a browser loads to show it. Pure.

Read are <link> (stylesheet, icon, preload), <script src>, <img> and <picture> (src, srcset), <video poster>,
<input type=image>, and url() and @import of styles. Not read: URLs that scripts build, escapes in styles, audio and
video. Styles come first, then scripts, icons, pictures, so that a limit cuts pictures. O(bytes), for hostile input too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from nephila.kernel import messages as m
from nephila.kernel.requisites import MAX_REQUISITES, level_of
from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.parser.links.link_list import UnresolvedLink, pack, resolve, run_to_end

MAX_STYLE_BYTES: Final = 512 << 10
"""Of one style; what follows is not read. A hostile one costs 35 ms."""
_MAX_SRCSET_CHARS: Final = 32 << 10
_STYLE_RELS: Final = frozenset(("stylesheet",))
_OTHER_RELS: Final = frozenset(("icon", "apple-touch-icon", "mask-icon", "preload", "modulepreload"))
_SEPARATORS: Final = " \t\n\f\r,"
_CANDIDATE: Final = late_pattern(r"[\s,]*([^\s,]\S*[^\s,]|[^\s,])(?:\s+[^,]*)?(?:,|$)")
_STYLE_URL: Final = late_pattern(
    r"""(?:url\(\s*|@import\s+)(?:"([^"\n]{1,8192})"|'([^'\n]{1,8192})'|([^\s"'();]{1,8192})\s*\))""",
    re.IGNORECASE,
)


def requisites_of_page(tree: Any) -> Iterator[UnresolvedLink]:
    """Requisites of an HTML page, each text once. `tree` is lexbor's. O(nodes)."""
    return (UnresolvedLink(url) for url in islice(_once(_of_page(tree)), MAX_REQUISITES))


def requisites_of_style(body: bytes, limit: int) -> list[UnresolvedLink]:
    """Requisites of a style, each text once, at most `limit`."""
    style = body[:MAX_STYLE_BYTES].decode("utf-8", "replace")
    return [UnresolvedLink(url) for url in islice(_once(_of_style(style)), limit)]


def requisite_links(page: m.Page, entries: list[UnresolvedLink], limit: int) -> list[m.Outlinks]:
    """The message of these requisites, if there are any; the first `limit`."""
    rows = run_to_end(resolve(page.url, entries))[:limit]
    if not rows:
        return []
    links = pack(page, rows, page.depth, m.LinkSource.REQUISITE)
    given = page.context or m.Context()
    # They belong to the session of the page, and to no step or platform of a crawl.
    links.context = m.Context(
        session=given.session, proxy_class=given.proxy_class, requisite=level_of(page.context) + 1
    )
    return [links]


def _once(urls: Iterable[str]) -> Iterator[str]:
    known = set()
    for url in urls:
        url = url.strip()
        if url and url not in known and not url.startswith(("#", "data:")):
            known.add(url)
            yield url


def _of_page(tree: Any) -> Iterator[str]:
    rels = [(set((node.attributes["rel"] or "").lower().split()), node) for node in tree.css("link[rel]")]
    for wanted in (_STYLE_RELS, _OTHER_RELS):
        for rel, node in rels:
            if not wanted.isdisjoint(rel):
                yield node.attributes.get("href") or ""
                yield from _of_srcset(node.attributes.get("imagesrcset") or "")
        if wanted is _STYLE_RELS:
            for node in tree.css("style"):
                yield from _of_style(node.text()[:MAX_STYLE_BYTES])
            for node in tree.css("script[src]"):
                yield node.attributes["src"] or ""
    for node in tree.css("img, picture source, video[poster], input[type=image], [style]"):
        of = node.attributes
        if node.tag in ("img", "input"):
            yield of.get("src") or ""
        if node.tag in ("img", "source"):
            yield from _of_srcset(of.get("srcset") or "")
        yield of.get("poster") or ""
        if style := of.get("style"):
            yield from _of_style(style[:MAX_STYLE_BYTES])


def _of_srcset(value: str) -> Iterator[str]:
    for found in _CANDIDATE.finditer(value[:_MAX_SRCSET_CHARS].rstrip(_SEPARATORS)):
        yield found[1]


def _of_style(style: str) -> Iterator[str]:
    for found in _STYLE_URL.finditer(_without_comments(style)):
        yield found[1] or found[2] or found[3] or ""


def _without_comments(style: str) -> str:
    kept, at = [], 0
    while (start := style.find("/*", at)) >= 0:
        kept.append(style[at:start])
        end = style.find("*/", start + 2)
        if end < 0:
            return " ".join(kept)
        at = end + 2
    return " ".join([*kept, style[at:]])
