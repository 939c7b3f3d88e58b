"""Text, title, author, dates and links of a PDF. Run in the sandbox: pdfium is C++ and the bytes are hostile.

Invariant: what was read before a limit - pages, bytes of text, links, seconds - is given, with the reason why there is
no more; a document that cannot be read at all gives a reason and no text. Nothing is rendered, no script is run.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pypdfium2 as pdfium
import pypdfium2.raw as raw

from nephila.parser.documents.content import MAX_URL_CHARS, MAX_WORD_CHARS, DocumentContent, without_controls
from nephila.parser.documents.pdf_task import PdfRequest
from nephila.parser.page.text import cut_utf8, one_line

_LINKS_OF_PAGE: Final = 2_000
_ANCHOR_CHARS: Final = 300
# PDF 32000-1, 7.9.4: D:YYYYMMDDHHmmSSOHH'mm', all but the year optional.
_DATE: Final = re.compile(r"(?:D:)?(\d{4})(?:(\d\d)(?:(\d\d)(?:(\d\d)(\d\d)(\d\d)?(?:(Z)|([+-])(\d\d)'?(\d\d)?)?)?)?)?")
# What pdfium writes for the hyphen of a word that was broken at the end of a line.
_HYPHENS: Final = dict.fromkeys((0x02, 0xFFFE))
_WHY: Final = {
    raw.FPDF_ERR_PASSWORD: "encrypted: a password is needed",
    raw.FPDF_ERR_SECURITY: "encrypted in a way that cannot be read",
    raw.FPDF_ERR_FORMAT: "broken: not a whole PDF",
}

_decode = msgspec.msgpack.Decoder(PdfRequest).decode
_encode = msgspec.msgpack.Encoder().encode


def run(payload: bytes) -> bytes:
    """See `nephila.parser.sandbox.task.Task.module`."""
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
    texts: list[str] = []
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
        text, broken_here = _page(document, number, links, request.max_links)
        broken += broken_here
        texts.append(text)
        size += len(text.encode("utf-8", "replace"))
    if broken and not content.problem:
        content.problem = f"broken: {broken} of {count} pages cannot be read"
    whole = "\n".join(text for text in texts if text).encode("utf-8", "replace")
    content.text = cut_utf8(whole, request.max_text_bytes)
    content.links = list(links.items())
    return content


def _page(document: Any, number: int, links: dict[str, str], max_links: int) -> tuple[str, int]:
    """Text of one page, and 1 when there is none to be had; links are added."""
    try:
        page = document[number]
    except pdfium.PdfiumError:
        return "", 1
    try:
        text_page = page.get_textpage()
        raw_text = text_page.get_text_bounded().translate(_HYPHENS)
        text = "\n".join(filter(None, map(one_line, without_controls(raw_text).split("\n"))))
        for url, anchor in (*_annotated(document, page, text_page), *_written(text_page)):
            if url and len(url) <= MAX_URL_CHARS and len(links) < max_links:
                links[url] = links.get(url) or anchor
        text_page.close()
    except pdfium.PdfiumError:
        return "", 1
    finally:
        page.close()
    return text, 0


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
    found = raw.FPDFLink_LoadWebLinks(text_page)
    if not found:
        return
    try:
        for number in range(min(raw.FPDFLink_CountWebLinks(found), _LINKS_OF_PAGE)):
            units = raw.FPDFLink_GetURL(found, number, None, 0)
            if 0 < units <= MAX_URL_CHARS:
                buffer = (ctypes.c_ushort * units)()
                raw.FPDFLink_GetURL(found, number, buffer, units)
                yield bytes(buffer).decode("utf-16-le", "replace").rstrip("\0").strip(), ""
    finally:
        raw.FPDFLink_CloseWebLinks(found)


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
