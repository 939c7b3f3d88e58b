"""Text and structure of an office file. Run in the sandbox: archives may unpack to anything, XML may nest in itself.

Invariant: what was read before a limit is given with the reason why there is no more.
"""

from __future__ import annotations

import codecs
import zipfile
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from nephila.parser.documents.content import MAX_URL_CHARS, MAX_WORD_CHARS, DocumentContent
from nephila.parser.documents.office.task import OfficeRequest
from nephila.parser.page.text import cut_utf8, one_line

from nephila_documents.blocks import Block, BlockKind, cleaned, page_structure, structure_of, text_of
from nephila_documents.office.archive import Archive
from nephila_documents.office.books import read_book
from nephila_documents.office.open_document import read_open_document
from nephila_documents.office.sheets import Sheets
from nephila_documents.office.slides import read_slides
from nephila_documents.office.words import read_words

Read = Callable[[Archive, dict[str, str]], Iterator[Block]]

_OPEN: Final = "application/vnd.oasis.opendocument."
_XML: Final = "application/vnd.openxmlformats-officedocument."
READERS: Final[dict[str, Read]] = {
    f"{_XML}wordprocessingml.document": read_words,
    f"{_XML}presentationml.presentation": read_slides,
    f"{_OPEN}text": read_open_document,
    f"{_OPEN}presentation": read_open_document,
    f"{_OPEN}graphics": read_open_document,
}
SHEETS: Final = (f"{_XML}spreadsheetml.sheet", f"{_OPEN}spreadsheet", "application/vnd.ms-excel")
BOOK: Final = "application/epub+zip"

# zipfile and expat look these up while they read; later no file can be opened.
for _name in ("cp437", "utf-16", "utf-16-le", "iso8859-1"):
    codecs.lookup(_name)
_decode = msgspec.msgpack.Decoder(OfficeRequest).decode
_encode = msgspec.msgpack.Encoder().encode


def run(payload: bytes) -> bytes:
    return _encode(read(_decode(payload)))


def read(request: OfficeRequest) -> DocumentContent:
    """The text of a file of a known kind; nothing of any other."""
    kind = request.kind.removesuffix("-template")
    if kind in SHEETS:
        sheets = Sheets(request.body)
        return _content(sheets.blocks(), {}, lambda: sheets.problem, request)
    if kind != BOOK and kind not in READERS:
        return DocumentContent()
    try:
        archive = Archive(request.body)
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        return DocumentContent(problem=f"broken archive: {error}"[:200])
    if kind == BOOK:
        return _book(archive, request)
    links: dict[str, str] = {}
    return _content(READERS[kind](archive, links), links, lambda: archive.problem, request)


def _content(
    blocks: Iterable[Block], links: dict[str, str], problem: Callable[[], str], request: OfficeRequest
) -> DocumentContent:
    most, size, taken = request.max_text_bytes, 0, []
    why = ""
    for block in blocks:
        size += (
            sum(len(cell) for row in block.rows for cell in row) if block.kind is BlockKind.TABLE else len(block.text)
        )
        taken.append(block)
        if size > most:
            why = f"more than {most:,} bytes of text"
            break
    clean = cleaned(taken)
    content = DocumentContent(problem=why or problem())
    content.text = cut_utf8(text_of(clean).encode("utf-8", "replace"), most)
    content.structure = structure_of(clean, content.text)
    content.links = [
        (address, one_line(text)[:MAX_WORD_CHARS]) for address, text in links.items() if len(address) <= MAX_URL_CHARS
    ][: request.max_links]
    return content


def _book(archive: Archive, request: OfficeRequest) -> DocumentContent:
    texts, bodies, size = [], [], 0
    content = DocumentContent()
    for text, body in read_book(archive):
        texts.append(text)
        bodies.append(body)
        size += len(text)
        if size > request.max_text_bytes:
            content.problem = f"more than {request.max_text_bytes:,} bytes of text"
            break
    content.problem = content.problem or archive.problem
    content.text = cut_utf8("\n".join(filter(None, texts)).encode("utf-8", "replace"), request.max_text_bytes)
    content.structure = page_structure(b"\n".join(bodies), content.text)
    return content
