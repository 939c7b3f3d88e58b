"""Main text as Markdown (CommonMark with tables): headings, nested lists, tables, code with its language, quotes, links
and images of the blocks that the page pass selected.

Needs a tree, so it is not on the hot path. read.py cuts the tree into blocks, choose.py selects those of the main text,
write.py writes them. Invariants: no recursion; at most MAX_NODES nodes are read, MAX_CHARS characters written and
MAX_DEPTH lists or quotes nested; text of a page cannot become Markdown markup.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from nephila.native import UrlError, page_pass, parse_any, parse_url, sniff_encoding, to_utf8
from nephila.parser.config import ParserConfig
from nephila.parser.markdown.choose import select_blocks
from nephila.parser.markdown.read import MAX_DEPTH, MAX_NODES, read
from nephila.parser.markdown.write import MAX_CHARS, write
from nephila.parser.page.body_kind import HEAD_BYTES, BodyKind, kind_of
from nephila.parser.page.charset import encoding_of
from nephila.parser.page.html_tree import html_tree, tree_is_linear
from nephila.parser.page.page_pass import PagePass

__all__ = [
    "MAX_CHARS",
    "MAX_DEPTH",
    "MAX_NODES",
    "MarkdownSource",
    "document_markdown",
    "is_for_child",
    "lines_of",
    "markdown",
    "markdown_source",
    "page_markdown",
    "resolver",
]

MAX_TREE_BYTES: Final = 8 << 20
"""No tree is built of a longer page."""
MAX_TAGS: Final = 40_000
"""Of a page whose Markdown is made in a crawl: 0.3 s at most, a page of 80 KB takes 10 ms. Of a page that has more the
plain text is written."""
MAX_LOOP_TAGS: Final = 4_000
"""Of a page whose Markdown is made in a crawl's loop, 7 us each; that of others is made in a child process."""


class MarkdownSource(NamedTuple):
    """What Markdown needs beside the page."""

    lines: str
    """Of the main text, see `lines_of`."""
    base: str
    """What links are relative to."""


def markdown(tree: Any, main_text: str, resolve: Callable[[str], str]) -> str:
    """Markdown of the blocks of `main_text`, found again in `tree` (selectolax); `resolve` makes a link absolute or "".

    A line that the tree has not (its markup was repaired otherwise) is missing. O(nodes).
    """
    body = tree.body
    if body is None or not main_text:
        return ""
    return write(select_blocks(read(body, resolve), main_text))


def resolver(base: str, nowhere: str = "") -> Callable[[str], str]:
    """Makes links absolute, with their fragments; "" for what leads to no page, or below `nowhere`."""

    @cache
    def resolve(raw: str) -> str:
        try:
            href = str(parse_url(raw, base).href)
            if nowhere and href.startswith(nowhere):
                return ""
            return str(parse_any(raw, base)) if "#" in raw else href
        except UrlError:
            return ""

    return resolve


def lines_of(found: PagePass) -> str:
    """The lines of the main text, cells of tables one by one; all lines where a page has no main text."""
    if not found.main_lines:
        return found.text.decode("utf-8", "replace")
    rows = list(struct.iter_unpack("<IIIHH", found.text_lines))
    named = (rows[at] for (at,) in struct.iter_unpack("<I", found.main_lines))
    return b"\n".join(found.text[start : start + size] for start, size, *_ in named).decode("utf-8", "replace")


def markdown_source(body: bytes, found: PagePass, most_tags: int = MAX_TAGS) -> MarkdownSource | None:
    """What the Markdown of a page is made from; None where no tree is built, as of a page that would make it cost out
    of all proportion."""
    if len(body) > MAX_TREE_BYTES or body.count(b"<") > most_tags or not tree_is_linear(body, found.depth):
        return None
    return MarkdownSource(lines_of(found), found.base)


def is_for_child(body: bytes) -> bool:
    """Whether the Markdown of a page takes too long for a crawl's loop."""
    return body.count(b"<") > MAX_LOOP_TAGS


def page_markdown(body: bytes, encoding: str, found: PagePass, most_tags: int = MAX_TAGS) -> bytes:
    """Markdown of a page of a crawl; empty where it has no `markdown_source`."""
    source = markdown_source(body, found, most_tags)
    if source is None:
        return b""
    made = markdown(html_tree(to_utf8(body, encoding)), source.lines, resolver(source.base))
    return made.encode("utf-8", "replace")


def document_markdown(body: bytes, url: str, content_type: str, charset: str) -> bytes:
    """Markdown of a document that was stored; empty for what is no HTML."""
    kind, _ = kind_of(content_type or "text/html", body[:HEAD_BYTES])
    if kind is not BodyKind.HTML or not url:
        return b""
    config = ParserConfig()
    encoding = encoding_of(body, charset, sniff_encoding)
    found = page_pass(body, url, encoding, max_links=0, max_text_bytes=config.max_text_bytes)
    return page_markdown(body, encoding, found, sys.maxsize)
