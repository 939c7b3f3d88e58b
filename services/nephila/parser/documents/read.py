"""Which reader a document gets, for all that is read in place: each bounds itself, so none of them needs a child."""

from __future__ import annotations

from typing import Final

from nephila.native import spelled
from nephila.parser.documents.content import DocumentContent
from nephila.parser.documents.csv_text import read_csv
from nephila.parser.documents.json_text import read_json
from nephila.parser.documents.xml_text import read_xml
from nephila.parser.page.body_kind import BodyKind
from nephila.parser.page.text import cut_utf8, plain_text, spelled_text

TEXTS: Final = frozenset((BodyKind.TEXT, BodyKind.JSON, BodyKind.XML, BodyKind.CSV))
"""Kinds that have an encoding."""


def read_document(
    kind: BodyKind, content_type: str, body: bytes, encoding: str, max_text_bytes: int, max_links: int
) -> DocumentContent:
    """The content of a document; nothing of a kind that has no text. `encoding` is a WHATWG name. Never fails."""
    if kind is BodyKind.OFFICE:
        from nephila.parser.documents.office.metadata import read_office  # few crawls have one

        return read_office(body)
    if kind not in TEXTS:
        return DocumentContent()
    text = plain_text(body, encoding, max_text_bytes)
    if kind is BodyKind.TEXT:
        return DocumentContent(text=spelled(text))
    # Longer ones were cut between characters, and end somewhere.
    decoded = text.decode()
    if kind is BodyKind.JSON:
        content = read_json(decoded, max_links)
    elif kind is BodyKind.XML:
        content = read_xml(decoded, max_links)
    else:
        content = read_csv(decoded, "\t" if content_type.endswith("tab-separated-values") else "")
    content.text, content.title = cut_utf8(spelled(content.text), max_text_bytes), spelled_text(content.title)
    return content
