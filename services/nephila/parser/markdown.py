"""The main text of a page as Markdown, by the native core or its fallback."""

from __future__ import annotations

import struct

from nephila.native import PagePass, markdown, page_pass, sniff_encoding
from nephila.parser.config import ParserConfig
from nephila.parser.page.body_kind import HEAD_BYTES, BodyKind, kind_of
from nephila.parser.page.charset import encoding_of


def page_markdown(body: bytes, encoding: str, found: PagePass, nowhere: str = "") -> bytes:
    """Markdown in UTF-8 of the page that the page pass has read. Links below `nowhere` lead nowhere. O(bytes)."""
    return markdown(body, encoding, _lines_of(found), found.base, nowhere)


def document_markdown(body: bytes, url: str, content_type: str, charset: str) -> bytes:
    """Markdown of a document that was stored; empty for what is no HTML."""
    kind, _ = kind_of(content_type or "text/html", body[:HEAD_BYTES])
    if kind is not BodyKind.HTML or not url:
        return b""
    encoding = encoding_of(body, charset, sniff_encoding)
    found = page_pass(body, url, encoding, max_links=0, max_text_bytes=ParserConfig().max_text_bytes)
    return page_markdown(body, encoding, found)


def _lines_of(found: PagePass) -> bytes:
    """The lines of the main text, cells of tables one by one; all lines where a page has no main text."""
    if not found.main_lines:
        return found.text
    text = found.text
    rows = struct.unpack(f"<{len(found.text_lines) // 4}I", found.text_lines)
    numbers = struct.unpack(f"<{len(found.main_lines) // 4}I", found.main_lines)
    return b"\n".join([text[rows[at] : rows[at] + rows[at + 1]] for at in [4 * number for number in numbers]])
