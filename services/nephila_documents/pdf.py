"""Text, structure, metadata and links of a PDF. Run in the sandbox: pdfium is C++ and the bytes are hostile.

Invariant: what was read before a limit - pages, bytes of text, links, seconds - is given, with the reason why there is
no more; a document that cannot be read at all gives a reason and no text. Nothing is rendered, no script is run.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec
import pypdfium2 as pdfium
import pypdfium2.raw as raw
from nephila.parser.documents.content import MAX_URL_CHARS, MAX_WORD_CHARS, DocumentContent
from nephila.parser.documents.pdf_task import PdfRequest
from nephila.parser.page.text import cut_utf8, one_line

from nephila_documents.blocks import Block, cleaned, structure_of, text_of
from nephila_documents.pdf_grids import Grid, Rule, grids_of
from nephila_documents.pdf_layout import Piece, Sizes, blocks_of, key_of, sizes_of
from nephila_documents.pdf_pieces import pieces_of, rules_of

_LINKS_OF_PAGE: Final = 2_000
_ANCHOR_CHARS: Final = 300
_OUTLINE: Final = 5_000
_LAYOUT_S: Final = 1.5
"""For the blocks of all pages, beyond the time for reading them: a tenth of that of common documents."""
# PDF 32000-1, 7.9.4: D:YYYYMMDDHHmmSSOHH'mm', all but the year optional.
_DATE: Final = re.compile(r"(?:D:)?(\d{4})(?:(\d\d)(?:(\d\d)(?:(\d\d)(\d\d)(\d\d)?(?:(Z)|([+-])(\d\d)'?(\d\d)?)?)?)?)?")
_WHY: Final = {
    raw.FPDF_ERR_PASSWORD: "encrypted: a password is needed",
    raw.FPDF_ERR_SECURITY: "encrypted in a way that cannot be read",
    raw.FPDF_ERR_FORMAT: "broken: not a whole PDF",
}

_decode = msgspec.msgpack.Decoder(PdfRequest).decode
_encode = msgspec.msgpack.Encoder().encode


def run(payload: bytes) -> bytes:
    return _encode(read(_decode(payload)))


def read(request: PdfRequest) -> DocumentContent:
    """What is in a PDF, as far as the request's limits go."""
    try:
        document = pdfium.PdfDocument(request.body)
    except pdfium.PdfiumError as error:
        return DocumentContent(problem=_WHY.get(error.err_code, "broken: it cannot be opened"))
    try:
        return _read(document, request)
    finally:
        document.close()


def _read(document: Any, request: PdfRequest) -> DocumentContent:
    count = len(document)
    content = DocumentContent(
        title=_word(document, "Title"),
        author=_word(document, "Author"),
        published=iso_date(_word(document, "CreationDate")),
        modified=iso_date(_word(document, "ModDate")),
        facts={"pages": str(count)},
    )
    if subject := _word(document, "Subject"):
        content.facts["description"] = subject
    until = time.monotonic() + request.budget_s
    links: dict[str, str] = {}
    pages: list[tuple[list[Piece], list[Rule]]] = []
    size = broken = 0
    for number in range(count):
        if number >= request.max_pages:
            content.problem = f"more than {request.max_pages:,} pages"
        elif size > request.max_text_bytes:
            content.problem = f"more than {request.max_text_bytes:,} bytes of text"
        elif time.monotonic() > until:
            content.problem = f"{number} of {count} pages read in {request.budget_s:g} s"
        if content.problem:
            break
        pieces, rules, broken_here = _page(document, number, links, request.max_links)
        broken += broken_here
        pages.append((pieces, rules))
        size += sum(len(piece.text) for piece in pieces)
    if broken and not content.problem:
        content.problem = f"broken: {broken} of {count} pages cannot be read"
    outline, sizes = _outline(document, len(pages)), sizes_of(pieces for pieces, _ in pages)
    page_blocks: list[Block] = []
    for number, (pieces, rules) in enumerate(pages):
        if time.monotonic() > until + _LAYOUT_S:
            content.problem = f"{number} of {count} pages laid out in {request.budget_s + _LAYOUT_S:g} s"
            break
        page_blocks += _blocks(pieces, grids_of(pieces, rules), sizes, outline.get(number, {}))
    blocks = cleaned(page_blocks)
    content.text = cut_utf8(text_of(blocks).encode("utf-8", "replace"), request.max_text_bytes)
    content.structure = structure_of(blocks, content.text)
    content.links = list(links.items())
    return content


def _blocks(pieces: list[Piece], grids: list[Grid], sizes: Sizes, outline: dict[str, int]) -> Iterator[Block]:
    """Blocks of one page: text between tables, and tables where their first piece stands."""
    taken = frozenset().union(*(grid.pieces for grid in grids))
    at = 0
    for grid in sorted(grids, key=lambda grid: grid.first):
        yield from blocks_of([pieces[n] for n in range(at, grid.first) if n not in taken], sizes, outline)
        yield grid.block
        at = grid.first
    yield from blocks_of([pieces[n] for n in range(at, len(pieces)) if n not in taken], sizes, outline)


def _outline(document: Any, pages: int) -> dict[int, dict[str, int]]:
    """The headings that the document's outline has on each page, with their levels from 1."""
    headings: dict[int, dict[str, int]] = {}
    try:
        for entry in islice(document.get_toc(max_depth=6), _OUTLINE):
            target = entry.get_dest()
            number = target.get_index() if target is not None else None
            if number is not None and 0 <= number < pages and (key := key_of(entry.get_title())):
                headings.setdefault(number, {})[key] = entry.level + 1
    except (pdfium.PdfiumError, UnicodeDecodeError):
        pass
    return headings


def _page(document: Any, number: int, links: dict[str, str], max_links: int) -> tuple[list[Piece], list[Rule], int]:
    """Text of one page, and 1 when there is none to be had; links are added."""
    try:
        page = document[number]
    except pdfium.PdfiumError:
        return [], [], 1
    try:
        text_page = page.get_textpage()
        pieces, rules = pieces_of(text_page), rules_of(page)
        for url, anchor in (*_annotated(document, page, text_page), *_written(text_page)):
            if url and len(url) <= MAX_URL_CHARS and len(links) < max_links:
                links[url] = links.get(url) or anchor
        text_page.close()
    except pdfium.PdfiumError:
        return [], [], 1
    finally:
        page.close()
    return pieces, rules, 0


def _annotated(document: Any, page: Any, text_page: Any) -> Iterator[tuple[str, str]]:
    """Links laid over the page: address, and the text below."""
    position, link = ctypes.c_int(0), raw.FPDF_LINK()
    for _ in range(_LINKS_OF_PAGE):
        if not raw.FPDFLink_Enumerate(page, position, link):
            return
        action = raw.FPDFLink_GetAction(link)
        if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
            continue
        size = raw.FPDFAction_GetURIPath(document, action, None, 0)
        if not 0 < size <= MAX_URL_CHARS:
            continue
        buffer = ctypes.create_string_buffer(size)
        raw.FPDFAction_GetURIPath(document, action, buffer, size)
        area = raw.FS_RECTF()
        anchor = ""
        if raw.FPDFLink_GetAnnotRect(link, area):
            anchor = text_page.get_text_bounded(area.left, area.bottom, area.right, area.top)
        yield buffer.value.decode("utf-8", "replace").strip(), one_line(anchor[:_ANCHOR_CHARS])


def _written(text_page: Any) -> Iterator[tuple[str, str]]:
    """Addresses that stand in the text."""
    links = raw.FPDFLink_LoadWebLinks(text_page)
    if not links:
        return
    try:
        for number in range(min(raw.FPDFLink_CountWebLinks(links), _LINKS_OF_PAGE)):
            units = raw.FPDFLink_GetURL(links, number, None, 0)
            if 0 < units <= MAX_URL_CHARS:
                buffer = (ctypes.c_ushort * units)()
                raw.FPDFLink_GetURL(links, number, buffer, units)
                yield bytes(buffer).decode("utf-16-le", "replace").rstrip("\0").strip(), ""
    finally:
        raw.FPDFLink_CloseWebLinks(links)


def _word(document: Any, key: str) -> str:
    try:
        value: str = document.get_metadata_value(key)
    except UnicodeDecodeError:
        return ""
    return one_line(value[:MAX_WORD_CHARS])


def iso_date(text: str) -> str:
    """A PDF's date in ISO 8601, as exact as it is; "" for what is none."""
    match = _DATE.match(text.strip())
    if match is None:
        return ""
    year, month, day, hour, minute, second, zulu, sign, zone_hours, zone_minutes = match.groups()
    date = "-".join(part for part in (year, month, day) if part)
    if not hour:
        return date
    zone = "Z" if zulu or zone_hours == "00" else f"{sign}{zone_hours}:{zone_minutes or '00'}" if sign else ""
    return f"{date}T{hour}:{minute}:{second or '00'}{zone}"
