"""OpenDocument texts and presentations (odt, odp): headings, paragraphs, lists, tables, slides.

Source: OpenDocument 1.3 part 3, sections 5, 6, 9 and 10. Tracked deletions, comments and styles are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nephila_documents.blocks import Block, BlockKind
from nephila_documents.office.archive import Archive, attribute, elements, local

MAX_REPEATED: Final = 100
"""Of a cell or row that is written once for many."""
_SKIPPED: Final = frozenset(
    ("tracked-changes", "annotation", "forms", "variable-decls", "sequence-decls", "desc", "title")
)
_SLIDE_FRAME: Final = ("header", "footer", "date-time", "page-number")


def read_open_document(archive: Archive, links: dict[str, str]) -> Iterator[Block]:
    """The blocks of a document; addresses of links are added."""
    names = ("h", "p", "list", "table", "page", "tracked-changes")
    for element in elements(archive.read("content.xml"), names, inside="body"):
        for link in element.iter("{*}a"):
            if (address := attribute(link, "href")) and not address.startswith("#"):
                links.setdefault(address, _text(link))
        yield from _blocks(element, 0)


def _blocks(element: Any, depth: int) -> Iterator[Block]:
    match local(element):
        case "h":
            level = attribute(element, "outline-level")
            yield Block(BlockKind.HEADING, _text(element), int(level) if level.isdecimal() and len(level) < 3 else 1)
        case "p":
            yield Block(BlockKind.PARAGRAPH, _text(element))
            for box in element.iter("{*}text-box"):
                yield from (block for child in box for block in _blocks(child, depth))
        case "list":
            yield from _list(element, 0)
        case "table":
            yield Block(BlockKind.TABLE, rows=tuple(_rows(element)))
        case name if name not in _SKIPPED and depth < 50:
            if attribute(element, "class") in _SLIDE_FRAME:
                return
            if name == "frame" and attribute(element, "class") == "title":
                yield Block(BlockKind.HEADING, " ".join(_text(paragraph) for paragraph in element.iter("{*}p")), 2)
                return
            for child in element:
                yield from _blocks(child, depth + 1)


def _list(element: Any, level: int) -> Iterator[Block]:
    for item in element.iterchildren("{*}list-item", "{*}list-header"):
        for child in item:
            if local(child) == "list":
                if level < 50:
                    yield from _list(child, level + 1)
            elif local(child) == "h":
                yield from _blocks(child, 0)
            else:
                yield Block(BlockKind.ITEM, _text(child), level)


def _rows(table: Any) -> Iterator[tuple[str, ...]]:
    for row in table.iter("{*}table-row"):
        if next(row.iterancestors("{*}table"), None) is not table:
            continue
        cells: list[str] = []
        for cell in row.iterchildren("{*}table-cell", "{*}covered-table-cell"):
            repeated = attribute(cell, "number-columns-repeated", "1")
            times = min(int(repeated), MAX_REPEATED) if repeated.isdecimal() and len(repeated) < 9 else 1
            cells += [" ".join(_text(paragraph) for paragraph in cell.iter("{*}p", "{*}h"))] * times
        while cells and not cells[-1]:
            cells.pop()
        yield tuple(cells)


def _text(element: Any) -> str:
    out: list[str] = []
    _collect(element, out)
    return "".join(out)


def _collect(element: Any, out: list[str]) -> None:
    """Text with its spaces; notes follow in brackets, text boxes are blocks of their own."""
    out.append(element.text or "")
    for child in element:
        match local(child):
            case "s":
                out.append(" ")
            case "tab":
                out.append("\t")
            case "line-break":
                out.append("\n")
            case "note-body":
                out.append(" (")
                _collect(child, out)
                out.append(")")
            case "text-box" | "annotation" | "note-citation":
                pass
            case _:
                _collect(child, out)
        out.append(child.tail or "")
