"""What is read of PDF manuals, beside the HTML that their authors built of the same source.

    python -m benchmarks.bench_pdf CACHE [--language en]

The Debian installation guide (the cache of bench_charsets). Headings: found as headings, and headings that are none.
Rows and cells of tables. Words: of the HTML that the text has; `first letter lost`: words that the text has without it.
`pdfium` is its own text, in the order of the content.
"""

from __future__ import annotations

import argparse
import gzip
import re
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pypdfium2 as pdfium
from nephila.native import markdown as as_markdown
from nephila.parser.documents.pdf import read
from nephila.parser.documents.pdf_layout import key_of
from nephila.parser.documents.pdf_task import PdfRequest
from selectolax.lexbor import LexborHTMLParser

from benchmarks.charset_truth import fetch
from benchmarks.report import table

ROOT = "installation-guide-amd64/usr/share/doc/installation-guide-amd64"
_WORD = re.compile(r"\w{4,}")
_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
_ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)
_CHAPTER = re.compile(r"^(?:chapter|kapitel|capitolo|capítulo|chapitre|appendix|anhang) \w+ ", re.IGNORECASE)


def words(text: str) -> Counter[str]:
    """Words of four letters and more."""
    return Counter(_WORD.findall(text.casefold()))


def truth(folder: Path) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Headings, cells and words of the HTML pages."""
    headings: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    known: Counter[str] = Counter()
    for path in sorted(folder.glob("*.html")):
        tree = LexborHTMLParser(path.read_bytes())
        for node in tree.css("div.toc, .navheader, .navfooter, script, style"):
            node.decompose()
        body = tree.body
        known += words(body.text(separator=" ") if body is not None else "")
        for node in tree.css("h1.title, h2.title, h3.title, h4.title, h5.title"):
            headings[heading_key(node.text())] += 1
        for node in tree.css(".note, .warning, .tip, .important, .caution"):
            node.decompose()  # frames, which the HTML lays out as tables
        for node in tree.css("td, th"):
            cells[squeezed(node.text())] += 1
    del headings[""], cells[""]
    return headings, cells, known


def heading_key(text: str) -> str:
    """A heading without its chapter and number."""
    return key_of(_CHAPTER.sub("", " ".join(text.split())))


def squeezed(text: str) -> str:
    """Without white space, escapes and hyphens."""
    return re.sub(r"[\s\\\u00ad-]", "", text)


def share(found: Counter[str], wanted: Counter[str]) -> float:
    """Of the wanted ones."""
    return sum((found & wanted).values()) / max(sum(wanted.values()), 1)


def cells_of(markdown: str) -> Iterable[str]:
    """Cells of all tables."""
    for row in _ROW.findall(markdown):
        yield from (squeezed(cell) for cell in re.split(r"(?<!\\)\|", row) if squeezed(cell))


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--language", action="append")
    arguments = parser.parse_args()
    fetch(arguments.cache)
    rows = []
    for folder in sorted(path for path in (arguments.cache / ROOT).iterdir() if path.is_dir()):
        if arguments.language and folder.name not in arguments.language:
            continue
        manual = next(folder.glob("*.pdf.gz"), None)
        if manual is None:  # not each language has one
            continue
        body = gzip.decompress(manual.read_bytes())
        headings, cells, known = truth(folder)
        start = time.process_time()
        content = read(PdfRequest(body, 8_000_000, 10_000, budget_s=60.0))
        cost = 1000 * (time.process_time() - start) / int(content.facts["pages"])
        text = content.text.decode()
        markdown = as_markdown(content.structure, content.text, "http://page.invalid/").decode()
        found = Counter(heading_key(re.sub(r"\\(.)", r"\1", one)) for one in _HEADING.findall(markdown))
        has = words(text)
        document = pdfium.PdfDocument(body)
        plain = words("\n".join(page.get_textpage().get_text_bounded() for page in document))
        missing = known - has
        lost = sum(count for word, count in missing.items() if (has - known)[word[1:]] > 0)
        rows.append(
            (
                folder.name,
                sum(headings.values()),
                share(found, headings),
                share(headings, found),
                sum(cells.values()),
                share(Counter(cells_of(markdown)), cells),
                share(has, known),
                share(plain, known),
                lost,
                cost,
            )
        )
    head = (
        "language",
        "headings",
        "found",
        "right",
        "cells",
        "found",
        "words",
        "pdfium",
        "first letter lost",
        "ms/page",
    )
    print(table(head, rows))


if __name__ == "__main__":
    main()
