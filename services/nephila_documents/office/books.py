"""EPUB: its chapters in the order of the spine, each read as the page that it is. Source: EPUB 3.3, 4 and 5."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from nephila.native import PassOptions, page_pass

from nephila_documents.office.archive import Archive, elements

MAX_CHAPTERS: Final = 1_000
_BASE: Final = "https://book.invalid/"


def read_book(archive: Archive) -> Iterator[tuple[str, bytes]]:
    """Text and body of each chapter."""
    root = next(
        (element.get("full-path", "") for element in elements(archive.read("META-INF/container.xml"), ("rootfile",))),
        "",
    )
    package = archive.read(root)
    members = {element.get("id"): element.get("href", "") for element in elements(package, ("item",))}
    chapters = [
        members[name] for element in elements(package, ("itemref",)) if (name := element.get("idref")) in members
    ]
    if len(chapters) > MAX_CHAPTERS:
        archive.problem = f"more than {MAX_CHAPTERS:,} chapters"
    for href in chapters[:MAX_CHAPTERS]:
        body = archive.read(posixpath.normpath(posixpath.join(posixpath.dirname(root), unquote(href))))
        facts = page_pass(body, _BASE, "utf-8", PassOptions(main_text=False))
        yield facts.text.decode(), body
