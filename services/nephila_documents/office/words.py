"""Text documents of OOXML (docx): paragraphs, headings, lists and tables. Sources: ECMA-376-1, 17.3, 17.4, 17.7, 17.9.

Deleted text, field codes and the second copy of text boxes are left out; headers and footers too, notes stand last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nephila_documents.blocks import Block, BlockKind
from nephila_documents.office.archive import Archive, attribute, elements, local

_MAIN: Final = "word/document.xml"
_NOTES: Final = ("word/footnotes.xml", "word/endnotes.xml")
_SKIPPED: Final = frozenset(
    ("del", "delText", "instrText", "Fallback", "pPr", "rPr", "tblPr", "tcPr", "trPr", "moveFrom")
)
_CODE_STYLES: Final = ("code", "preformatted", "html preformatted", "source")


def read_words(archive: Archive, links: dict[str, str]) -> Iterator[Block]:
    """The blocks of a document; addresses of its links are added."""
    main = next((name for name in archive.names if name.startswith("word/document") and name.endswith(".xml")), _MAIN)
    styles = _styles(archive)
    targets = archive.targets(main)
    for element in elements(archive.read(main), ("p", "tbl"), inside="body"):
        yield from _block(element, styles, targets, links)
    for notes in _NOTES:
        if notes in archive.names:
            for note in elements(archive.read(notes), ("footnote", "endnote")):
                if attribute(note, "type") in ("", "normal"):
                    yield Block(BlockKind.PARAGRAPH, _text(note))


def _styles(archive: Archive) -> dict[str, tuple[str, int]]:
    """Style id → its name in lower case and the level of a heading, 0 for none."""
    by_id: dict[str, tuple[str, int]] = {}
    parents: dict[str, str] = {}
    for style in elements(archive.read("word/styles.xml"), ("style",)):
        name, level = "", 0
        for child in style.iter():
            match local(child):
                case "name":
                    name = name or attribute(child, "val").lower()
                case "basedOn":
                    parents[attribute(style, "styleId")] = attribute(child, "val")
                case "outlineLvl":
                    level = _number(attribute(child, "val"), -1) + 1
        if name == "title":
            level = 1
        elif name.startswith("heading ") and not level:
            level = _number(name[8:], 0)
        by_id[attribute(style, "styleId")] = (name, level if level <= 9 else 0)
    for style_id, (name, level) in by_id.items():
        above, steps = parents.get(style_id, ""), 0
        while not level and above and steps < 10:
            level, above, steps = by_id.get(above, ("", 0))[1], parents.get(above, ""), steps + 1
        by_id[style_id] = (name, level)
    return by_id


def _block(
    element: Any, styles: dict[str, tuple[str, int]], targets: dict[str, tuple[str, bool]], links: dict[str, str]
) -> Iterator[Block]:
    for link in element.iter("{*}hyperlink"):
        target, outside = targets.get(attribute(link, "id"), ("", False))
        if outside and target:
            links.setdefault(target, _text(link))
    if local(element) == "tbl":
        rows = (tuple(_cells(row)) for row in element.iterchildren("{*}tr", "{*}sdt"))
        yield Block(BlockKind.TABLE, rows=tuple(rows))
        return
    name, level, item = "", 0, -1
    for part in element.iterchildren("{*}pPr"):
        for property_ in part.iter("{*}pStyle", "{*}outlineLvl", "{*}ilvl"):
            value = attribute(property_, "val")
            match local(property_):
                case "pStyle":
                    name, level = styles.get(value, (value.lower(), _heading(value)))
                case "outlineLvl":
                    level = _number(value, -1) + 1
                case _:
                    item = _number(value, 0)
    text = _text(element)
    if 0 < level <= 9:
        yield Block(BlockKind.HEADING, text, level)
    elif item >= 0 or name.startswith("list "):
        yield Block(BlockKind.ITEM, text, max(item, 0))
    else:
        kind = BlockKind.CODE if name.startswith(_CODE_STYLES) else BlockKind.PARAGRAPH
        yield Block(kind, text)


def _heading(style: str) -> int:
    """Level of a heading by the id of a style that is not defined."""
    return _number(style[7:], 0) if style.lower().startswith("heading") else 0


def _cells(row: Any) -> Iterator[str]:
    for cell in row.iter("{*}tc"):
        if next(cell.iterancestors("{*}tr"), None) is row or local(row) != "tr":
            yield _text(cell)
            span = next((attribute(mark, "val") for mark in cell.iter("{*}gridSpan")), "")
            yield from ("",) * min(_number(span, 1) - 1, 100)


def _text(element: Any) -> str:
    out: list[str] = []
    _collect(element, out)
    return "".join(out)


def _collect(element: Any, out: list[str]) -> None:
    for child in element:
        name = local(child)
        match name:
            case "t":
                out.append(child.text or "")
            case "tab":
                out.append("\t")
            case "br" | "cr":
                out.append("\n")
            case "noBreakHyphen":
                out.append("-")
            case _ if name not in _SKIPPED:
                if name in ("p", "tc") and out:
                    out.append(" ")
                _collect(child, out)


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and len(text) < 5 else default
