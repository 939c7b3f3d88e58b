"""Requisites of a page and of a style: the URLs that a browser loads to show it. Pure.

Read are <link> (stylesheet, icon, preload), <script src>, <img> and <picture> (src, srcset), <video poster>,
<input type=image>, <embed>, <object data>, the attribute background, <image>, <use>, <feImage>, <script> of SVG, and
url(), image-set() and @import of styles; in shadow roots and documents of <iframe srcdoc> as well. Not read: URLs
that scripts build, escapes in styles, audio and video. Styles come first, then scripts, icons, pictures: a limit cuts
pictures. O(bytes), for hostile input too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from nephila.kernel import messages as m
from nephila.kernel.pages.requisites import MAX_REQUISITES, level_of
from nephila.kernel.runtime.late_pattern import late_pattern
from nephila.native import candidates_of_srcset
from nephila.parser.links.link_list import UnresolvedLink, pack, resolve, run_to_end
from nephila.parser.page.html_tree import content_of_template, html_tree

MAX_STYLE_BYTES: Final = 512 << 10
"""Of one style; what follows is not read. A hostile one costs 35 ms."""
_MAX_NESTED: Final = 3
"""Shadow roots and documents of frames within each other."""
_STYLE_RELS: Final = frozenset(("stylesheet",))
_OTHER_RELS: Final = frozenset(("icon", "apple-touch-icon", "mask-icon", "preload", "modulepreload"))
_FOREIGN: Final = ("href", "xlink:href")
_SOURCES: Final = {
    **dict.fromkeys(("img", "input", "embed"), ("src",)),
    "object": ("data",),
    **dict.fromkeys(("image", "use", "feImage", "script"), _FOREIGN),
}
"""Element → the attributes with its URL, of which the first counts."""
_PICTURES: Final = (
    "img, picture source, video[poster], input[type=image], embed[src], object[data], [background], [style],"
    " svg image, svg use, svg feImage, svg script"
)
_STYLE_URL: Final = late_pattern(
    r"""(?:url\(\s*|@import\s+)(?:"([^"\n]{1,8192})"|'([^'\n]{1,8192})'|([^\s"'();]{1,8192})\s*\))"""
    r"""|image-set\(((?:[^()"']++|"[^"\n]*+"|'[^'\n]*+'|\((?:[^()"']++|"[^"\n]*+"|'[^'\n]*+')*+\))*+)""",
    re.IGNORECASE,
)
_IN_IMAGE_SET: Final = late_pattern(
    r"""type\([^)]*+\)|(?:url\(\s*+)?+(?:"([^"\n]{1,8192})"|'([^'\n]{1,8192})')|url\(\s*+([^\s"'();]{1,8192})""",
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
    context = page.context or m.Context()
    # They belong to the session of the page, and to no step or platform of a crawl.
    links.context = m.Context(
        session=context.session, proxy_class=context.proxy_class, requisite=level_of(page.context) + 1
    )
    return [links]


def _once(urls: Iterable[str]) -> Iterator[str]:
    seen = set()
    for url in urls:
        url = url.strip()
        if url and url not in seen and not url.startswith(("#", "data:")):
            seen.add(url)
            yield url


def _of_page(tree: Any, nested: int = 0) -> Iterator[str]:
    rels = [(set((node.attributes["rel"] or "").lower().split()), node) for node in tree.css("link[rel]")]
    for expected_rels in (_STYLE_RELS, _OTHER_RELS):
        for rel, node in rels:
            if not expected_rels.isdisjoint(rel):
                yield node.attributes.get("href") or ""
                yield from candidates_of_srcset(node.attributes.get("imagesrcset") or "")
        if expected_rels is _STYLE_RELS:
            for node in tree.css("style"):
                yield from _of_style(node.text()[:MAX_STYLE_BYTES])
            for node in tree.css("script[src]"):
                yield node.attributes["src"] or ""
    for node in tree.css(_PICTURES):
        of = node.attributes
        for name in _SOURCES.get(node.tag, ()):
            if name in of:
                yield of[name] or ""
                break
        if node.tag in ("img", "source"):
            yield from candidates_of_srcset(of.get("srcset") or "")
        yield of.get("poster") or ""
        yield of.get("background") or ""
        if style := of.get("style"):
            yield from _of_style(style[:MAX_STYLE_BYTES])
    for node in tree.css("template[shadowrootmode], iframe[srcdoc]") if nested < _MAX_NESTED else ():
        source = node.attributes.get("srcdoc") or "" if node.tag == "iframe" else content_of_template(node)
        yield from _of_page(html_tree(source), nested + 1)


def _of_style(style: str) -> Iterator[str]:
    for style_url in _STYLE_URL.finditer(_without_comments(style)):
        images = (style_url,) if style_url[4] is None else _IN_IMAGE_SET.finditer(style_url[4])
        for image in images:
            yield image[1] or image[2] or image[3] or ""


def _without_comments(style: str) -> str:
    parts, at = [], 0
    while (start := style.find("/*", at)) >= 0:
        parts.append(style[at:start])
        end = style.find("*/", start + 2)
        if end < 0:
            return " ".join(parts)
        at = end + 2
    return " ".join([*parts, style[at:]])
