"""The content of one HTML page for `nephila extract`: title, text, metadata, links, media. Pure."""

from __future__ import annotations

import functools
from typing import Any, Final
from urllib.parse import urlsplit

from nephila.kernel.page_facts.author_names import single_names, visible_author
from nephila.kernel.page_facts.byline import byline
from nephila.kernel.page_facts.dates import DATELINE, dates
from nephila.kernel.page_facts.headline import from_title, is_site, without_site
from nephila.native import PagePass, UrlError, markdown, parse_url, query_in, to_utf8
from nephila.parser.config import ParserConfig
from nephila.parser.links.links import unpack
from nephila.parser.page.html_tree import html_tree
from nephila.parser.page.language import language_of
from nephila.parser.page.media import Medium, media
from nephila.parser.page.tree_walk import PageElements

MAX_TREE_BYTES: Final = 8 * 1024 * 1024
"""Above this no tree is built (some 20 bytes of memory per byte of an ordinary page); media then come from OpenGraph
alone."""

NOWHERE: Final = "http://document.invalid/"
"""Relative links of a document without a URL resolve to this reserved name: they are left out."""


def fill_html(
    result: dict[str, Any],
    body: bytes,
    encoding: str,
    passed: PagePass,
    config: ParserConfig,
    as_markdown: bool,
    *,
    trees: bool = True,
) -> None:
    """The content of an HTML page, read in this process; `trees`: a tree may be built, at the caller's risk."""
    pairs = passed.meta
    base = passed.base

    @functools.cache
    def resolve(raw: str) -> str:
        try:
            href = parse_url(query_in(raw, encoding), base).href
        except UrlError:
            return ""
        return "" if href.startswith(NOWHERE) else href

    tree = _tree(body, encoding) if trees else None
    elements = PageElements(tree)
    metadata = byline(pairs if tree is None else elements.metas(), elements.json_ld(), passed.title)
    images, videos = media(pairs, elements.media, resolve)
    stated = dict(reversed(pairs))
    headings = elements.headings()
    location = urlsplit(result["url"] or resolve(passed.canonical))
    host = location.hostname or ""
    site = stated.get("og:site_name", "")
    h1_texts = [text for heading in headings[1] if (text := " ".join(heading.split()))]
    only = h1_texts[0] if len(h1_texts) == 1 else ""
    title = without_site(metadata.title or from_title(passed.title, *headings), site, host, headings[0], only)
    h1s = [text for text in h1_texts if not is_site(text, site, host)]
    # The title of a front page is that name.
    if len(h1s) == 1 and location.path != "/" and is_site(title, site, host):
        title = h1s[0]
    beside = stated.get(DATELINE, "").split("\n")
    content = passed.main_text or passed.text
    lang = passed.lang or language_of(content)
    when = dates(metadata, elements, lang, location.geturl(), beside)
    author = metadata.author or elements.author() or visible_author(beside)
    result.update(
        encoding=encoding,
        title=title[: config.max_title_chars],
        text=content.decode(),
        comments=passed.comments.decode(),
        lang=lang,
        published=when.published,
        modified=when.modified,
        author=author,
        authors=single_names(author),
        section=metadata.section,
        image=resolve(metadata.image) if metadata.image else "",
        description=passed.description or stated.get("og:description", ""),
        canonical="" if passed.canonical.startswith(NOWHERE) else passed.canonical,
        links=[link for link in unpack(passed) if not link["url"].startswith(NOWHERE)],
        images=[image.url for image in images],
        videos=[video.url for video in videos],
        media=[*(_medium("image", medium) for medium in images), *(_medium("video", medium) for medium in videos)],
    )
    if as_markdown:
        # A page may name another base than the URL that it has, or has not.
        url = result["url"] or NOWHERE
        result["markdown"] = markdown(passed.structure, content, url, nowhere=NOWHERE).decode()


def _medium(kind: str, medium: Medium) -> dict[str, str]:
    """The texts of a medium, without empty ones."""
    entry = {"kind": kind, "url": medium.url}
    if medium.alt:
        entry["alt"] = medium.alt
    if medium.caption:
        entry["caption"] = medium.caption
    if medium.anchor:
        entry["anchor"] = medium.anchor
    return entry


def _tree(body: bytes, encoding: str) -> Any:
    if len(body) > MAX_TREE_BYTES:
        return None
    return html_tree(to_utf8(body, encoding))
