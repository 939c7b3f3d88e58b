"""XML that is neither page, sitemap nor feed: its text, a line for each stretch of it, its first title, its links.

Read as a stream of tags (`markup.py`): nothing is expanded or fetched, what is broken costs itself only. Invariant: at
most MAX_BYTES and MAX_TAGS are looked at.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from nephila.parser.documents.content import MAX_URL_CHARS, MAX_WORD_CHARS, DocumentContent
from nephila.parser.lists.markup import PAUSE, attributes, decoded_text, tokens
from nephila.parser.page.text import one_line

MAX_BYTES: Final = 2 << 20
MAX_TAGS: Final = 100_000

_PIECE_BYTES: Final = 128 << 10
# In SVG these name a picture or a part of the same drawing, elsewhere style sheets and schemas.
_NO_LINKS: Final = frozenset((b"image", b"use", b"feImage", b"stylesheet", b"import", b"include", b"script", b"style"))
_NO_TEXT: Final = frozenset((b"script", b"style"))


def read_xml(text: str, max_links: int) -> DocumentContent:
    """The content of an XML document; `text` is decoded. O(its length)."""
    raw = text.encode("utf-8", "replace")
    content = DocumentContent()
    if len(raw) > MAX_BYTES:
        content.problem = f"more than {MAX_BYTES:,} bytes"
        raw = raw[:MAX_BYTES]
    lines: list[str] = []
    links: dict[str, str] = {}
    stream = tokens(raw[at : at + _PIECE_BYTES] for at in range(0, len(raw), _PIECE_BYTES))
    last = local = b""
    for slash, name, written, after in islice(stream, MAX_TAGS):
        if name == PAUSE:
            continue
        if name:
            local = name.rpartition(b":")[2]
            last = b"" if slash else local
        line = "" if local in _NO_TEXT and not slash else one_line(decoded_text(after, "utf-8"))
        if line:
            lines.append(line)
            if last == b"title" and not content.title:
                content.title = line[:MAX_WORD_CHARS]
        if written and not slash and b"href" in written and local not in _NO_LINKS and len(links) < max_links:
            address = _address(written)
            if address:
                links.setdefault(address, line[:MAX_WORD_CHARS])
    if not content.problem and next(stream, None) is not None:
        content.problem = f"more than {MAX_TAGS:,} tags"
    content.text = "\n".join(lines).encode("utf-8", "replace")
    content.links = list(links.items())
    return content


def _address(written: bytes) -> str:
    for name, value in attributes(written).items():
        if name.rpartition(b":")[2] == b"href" and not value.startswith(b"#") and len(value) <= MAX_URL_CHARS:
            return decoded_text(value, "utf-8")
    return ""
