"""The main text of a page as Markdown, from a tree of lexbor: the model of the core's (core/src/markdown).

read.py cuts the tree into blocks, choose.py selects those of the main text, write.py writes them. Invariants: no
recursion; at most MAX_NODES nodes are read, MAX_CHARS characters written and MAX_DEPTH lists or quotes nested; text of
a page cannot become Markdown markup. Where markup is repaired, the lines may be cut otherwise than those of the core.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from nephila.native.fallback.markdown.choose import select_blocks
from nephila.native.fallback.markdown.read import read
from nephila.native.fallback.markdown.write import write
from nephila.native.fallback.texts import to_utf8
from nephila.native.fallback.urls import UrlError, parse_any, parse_url


def markdown(body: bytes, encoding: str, lines: bytes, base: str, nowhere: str = "") -> bytes:
    """Markdown, in UTF-8, of the blocks of a page that have the lines of its main text. O(nodes).

    `lines`: UTF-8, one line each. `base`: URL that links are relative to; links below `nowhere` lead nowhere. Raises
    `ValueError` for an unknown encoding, `UrlError` for another base than http(s).
    """
    parse_url(base)
    # With events each <option> walks through all options before it.
    tree = LexborHTMLParser(to_utf8(body, encoding), options=int(LexborDocumentOptions.WO_EVENTS))
    main_text = lines.decode("utf-8", "replace")
    if tree.body is None or not main_text:
        return b""
    blocks = select_blocks(read(tree.body, _resolver(base, nowhere)), main_text)
    return write(blocks).encode("utf-8", "replace")


def _resolver(base: str, nowhere: str) -> Callable[[str], str]:
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
