"""How an office file is handed to the sandbox; `text.py` runs there. Neither lxml nor calamine is imported here."""

from __future__ import annotations

from typing import Final

import msgspec

from nephila.parser.documents.content import DocumentContent, decode_result
from nephila.parser.sandbox import ChildError, Task

OFFICE: Final[Task[DocumentContent]] = Task(
    "office",
    "nephila_documents.office.text",
    decode_result,
    wall_s=10.0,
    memory_bytes=768 << 20,
    max_result_bytes=40 << 20,
)
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WORKBOOK: Final = ("Workbook".encode("utf-16-le"), "Book".encode("utf-16-le"))
"""Names of the stream that a spreadsheet of old Excel has."""


class OfficeRequest(msgspec.Struct, array_like=True):
    """One file and what may be taken from it."""

    body: bytes
    kind: str
    """Media type that the members show."""
    max_text_bytes: int
    max_links: int


def office_kind(body: bytes, metadata: DocumentContent) -> str:
    """Media type of a file whose text can be read; empty for archives and old formats other than xls."""
    if kind := metadata.facts.get("type", ""):
        return kind
    is_book = body.startswith(_OLE) and any(name in body for name in _WORKBOOK)
    return "application/vnd.ms-excel" if is_book else ""


def office_payload(body: bytes, kind: str, max_text_bytes: int, max_links: int) -> bytes:
    return msgspec.msgpack.encode(OfficeRequest(body, kind, max_text_bytes, max_links))


def with_text(metadata: DocumentContent, from_child: DocumentContent) -> DocumentContent:
    """Metadata that this process has read, with the text of a child."""
    metadata.text, metadata.structure, metadata.links = from_child.text, from_child.structure, from_child.links
    metadata.problem = from_child.problem or metadata.problem
    metadata.facts |= from_child.facts
    return metadata


def without_text(metadata: DocumentContent, broken: ChildError) -> DocumentContent:
    """Metadata alone, with the reason why the child has no text."""
    metadata.problem = f"text not read: {broken.reason}"
    return metadata
