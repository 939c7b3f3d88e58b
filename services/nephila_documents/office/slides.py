"""Presentations of OOXML (pptx): a heading per slide, its text in reading order of the file, tables, notes.

Sources: ECMA-376-1, 19.3 and 21.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nephila_documents.blocks import Block, BlockKind
from nephila_documents.office.archive import Archive, attribute, elements, local

MAX_SLIDES: Final = 2_000
_MAIN: Final = "ppt/presentation.xml"
_TITLES: Final = ("title", "ctrTitle")
_FRAME: Final = ("dt", "ftr", "sldNum", "hdr")
"""Placeholders for date, footer and number: the same on each slide."""


def read_slides(archive: Archive, links: dict[str, str]) -> Iterator[Block]:
    """The blocks of all slides; addresses of links are added."""
    targets = archive.targets(_MAIN)
    order = [attribute(slide, "{*}id") or _relation(slide) for slide in elements(archive.read(_MAIN), ("sldId",))]
    names = [targets[relation][0] for relation in order if relation in targets]
    if len(names) > MAX_SLIDES:
        archive.problem = f"more than {MAX_SLIDES:,} slides"
    for name in names[:MAX_SLIDES]:
        inner = archive.targets(name)
        yield from _slide(archive.read(name), inner, links)
        notes = next((target for target, _ in inner.values() if target.startswith("ppt/notesSlides/")), "")
        if notes:
            for shape in elements(archive.read(notes), ("sp",)):
                if _placeholder(shape) == "body":
                    yield from (Block(BlockKind.PARAGRAPH, _text(paragraph)) for paragraph in shape.iter("{*}p"))


def _relation(element: Any) -> str:
    """The id of a relation, which has the same local name as the element's own id."""
    return next((value for key, value in element.attrib.items() if key.endswith("}id")), "")


def _slide(data: bytes, targets: dict[str, tuple[str, bool]], links: dict[str, str]) -> Iterator[Block]:
    for shape in elements(data, ("sp", "graphicFrame", "cxnSp")):
        for link in shape.iter("{*}hlinkClick"):
            target, outside = targets.get(_relation(link), ("", False))
            if outside and target:
                run = next((ancestor for ancestor in link.iterancestors("{*}r")), None)
                links.setdefault(target, _text(run) if run is not None else "")
        if local(shape) == "graphicFrame":
            for table in shape.iter("{*}tbl"):
                rows = (tuple(_text(cell) for cell in row.iterchildren("{*}tc")) for row in table.iterchildren("{*}tr"))
                yield Block(BlockKind.TABLE, rows=tuple(rows))
            continue
        placeholder = _placeholder(shape)
        if placeholder in _FRAME:
            continue
        paragraphs = list(shape.iter("{*}p"))
        if placeholder in _TITLES:
            yield Block(BlockKind.HEADING, " ".join(map(_text, paragraphs)), 2)
            continue
        for paragraph in paragraphs:
            yield _paragraph(paragraph, is_list=placeholder in ("body", "obj"))


def _placeholder(shape: Any) -> str:
    """Type of a placeholder; empty for other shapes."""
    placeholder = next(shape.iter("{*}ph"), None)
    return attribute(placeholder, "type", "obj") if placeholder is not None else ""


def _paragraph(paragraph: Any, *, is_list: bool) -> Block:
    properties = next(paragraph.iterchildren("{*}pPr"), None)
    level = attribute(properties, "lvl") if properties is not None else ""
    has_bullet = properties is not None and next(properties.iter("{*}buChar", "{*}buAutoNum"), None) is not None
    if is_list or has_bullet:
        return Block(BlockKind.ITEM, _text(paragraph), int(level) if level.isdecimal() and len(level) < 3 else 0)
    return Block(BlockKind.PARAGRAPH, _text(paragraph))


def _text(element: Any) -> str:
    return "".join(node.text or "" if local(node) == "t" else " " for node in element.iter("{*}t", "{*}br", "{*}p"))
