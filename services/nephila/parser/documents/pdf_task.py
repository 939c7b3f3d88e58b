"""How a PDF is handed to the sandbox; `pdf.py` runs there. Nothing of pdfium is imported here."""

from __future__ import annotations

from typing import Final

import msgspec

from nephila.parser.documents.content import DocumentContent, decode_result
from nephila.parser.sandbox import Task

WALL_S: Final = 10.0
BUDGET_S: Final = 7.0
"""After so long no further page is begun: a long document gives its start, instead of nothing."""
MAX_PAGES: Final = 2_000

PDF: Final[Task[DocumentContent]] = Task(
    "pdf",
    "nephila_documents.pdf",
    decode_result,
    wall_s=WALL_S,
    memory_bytes=512 << 20,
    max_result_bytes=20 << 20,
)


class PdfRequest(msgspec.Struct, array_like=True):
    """One document and what may be taken from it."""

    body: bytes
    max_text_bytes: int
    max_links: int
    max_pages: int = MAX_PAGES
    budget_s: float = BUDGET_S


def pdf_payload(body: bytes, max_text_bytes: int, max_links: int) -> bytes:
    return msgspec.msgpack.encode(PdfRequest(body, max_text_bytes, max_links))
