"""The content of a document that is not HTML, in one form for all kinds. Pure.

A child process that has read hostile bytes returns the same form. `decode_result` accepts only what has this form.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from nephila.parser.links.link_list import UnresolvedLink
from nephila.parser.page.text import CONTROLS, one_line

MAX_TEXT_BYTES: Final = 16 << 20
MAX_LINKS: Final = 100_000
MAX_WORD_CHARS: Final = 4_000
MAX_URL_CHARS: Final = 20_000

Word = Annotated[str, msgspec.Meta(max_length=MAX_WORD_CHARS)]
Url = Annotated[str, msgspec.Meta(max_length=MAX_URL_CHARS)]


class DocumentContent(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The content that the parser takes from a document."""

    text: Annotated[bytes, msgspec.Meta(max_length=MAX_TEXT_BYTES)] = b""
    """UTF-8."""
    structure: Annotated[bytes, msgspec.Meta(max_length=MAX_TEXT_BYTES)] = b""
    """Beside the text; empty where the kind has none."""
    title: Word = ""
    author: Word = ""
    published: Word = ""
    """Date as ISO 8601, as exact as in the document."""
    modified: Word = ""
    lang: Word = ""
    links: Annotated[list[tuple[Url, Word]], msgspec.Meta(max_length=MAX_LINKS)] = []
    """Address as written and text; the document's own URL is the base."""
    facts: Annotated[dict[Word, Word], msgspec.Meta(max_length=50)] = {}
    """More to say of this kind: number of pages, names of columns."""
    problem: Word = ""
    """Why there may be more in it than was read; "" when all was."""

    def entries(self) -> list[UnresolvedLink]:
        """The links, to be resolved."""
        return [UnresolvedLink(url, 0.0, text) for url, text in self.links]


_decoder: Final = msgspec.msgpack.Decoder(DocumentContent)


def decode_result(data: bytes) -> DocumentContent:
    """Read what a child sent. Raises `ValueError` or `msgspec.MsgspecError` when it is not of the form."""
    content = _decoder.decode(data)
    content.text.decode()
    if content.text.translate(None, bytes(CONTROLS)) != content.text:
        raise ValueError("control characters in the text")
    for word in ("title", "author", "published", "modified", "lang", "problem"):
        setattr(content, word, one_line(getattr(content, word)))
    content.facts = {one_line(name): one_line(value) for name, value in content.facts.items()}
    return content


def without_controls(text: str) -> str:
    """Text of many lines without control characters but line ends and tabs."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(CONTROLS)
