"""Documentation pages of Debian packages, and the parts of them that a reader needs whole: code lines, paragraphs and
table rows.

The packages come by `apt-get download` into a cache directory and are unpacked with `dpkg -x`; nothing is installed.
A page's content is the part that its generator marks as such (Sphinx, the Apache manual, AsciiDoc, DocBook).
"""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from nephila.native import PassOptions, page_pass
from selectolax.lexbor import LexborHTMLParser

from benchmarks.maintext_truth import TruePage

LEAST_WORDS = 5
"""A shorter paragraph may stand in a page by chance."""


class Package(NamedTuple):
    """A Debian package, the pages of it, its content and what does not belong to that, as CSS selectors."""

    name: str
    pages: str
    content: str
    without: str


PACKAGES = (
    Package("python3.11-doc", "usr/share/doc/python3.11/html/[lhtr]*/*.html", "div.body", "a.headerlink"),
    Package("apache2-doc", "usr/share/doc/apache2-doc/manual/en/**/*.html", "#page-content", "#quickview, .permalink"),
    Package("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html/*.html", "body", ".navheader, .navfooter, .toc"),
    Package("git-doc", "usr/share/doc/git/html/*.html", "#content", "#footer"),
)
"""Documentation of Debian 12, by four generators: what is measured."""
TRAINING = (
    Package("cmake-doc", "usr/share/doc/cmake-data/html/*/*.html", "div.body", "a.headerlink"),
    Package("python-django-doc", "usr/share/doc/python-django-doc/html/[fhrt]*/**/*.html", "div.yui-b", "a.headerlink"),
    Package("nodejs-doc", "usr/share/doc/nodejs/api/*.html", "#apicontent", "a.mark"),
    Package("libglib2.0-doc", "usr/share/gtk-doc/html/*/*.html", "div.refentry, div.chapter", "table.navigation, .toc"),
    Package("exim4-doc-html", "usr/share/doc/exim4-doc-html/spec_html/*.html", "#content", "#toc, .navigation"),
    Package("sqlite3-doc", "usr/share/doc/sqlite3/*.html", "body", ".nosearch, .toc, .toc_header, .hidemobile"),
    Package("rust-doc", "usr/share/doc/rust-doc/html/[bs][ot][od]*/**/*.html", "main", ".sidebar"),
)
"""Of other packages: what the model is trained on (tools/train_maintext.py)."""
TRAINING_PAGES = 8
"""Of each package."""


class Page(NamedTuple):
    """One page and its file as it came."""

    name: str
    body: bytes
    package: Package


@dataclass
class Parts:
    """What stands in a page, or what of it an answer has: counts of texts without white space; code as it is."""

    code: Counter[str] = field(default_factory=Counter)
    """Lines with their indentation."""
    paragraphs: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)


def fetch(cache: Path, packages: tuple[Package, ...]) -> None:
    """Download and unpack what is not in the cache. SystemExit where that fails."""
    cache.mkdir(parents=True, exist_ok=True)
    for package in packages:
        target = cache / package.name
        if target.exists():
            continue
        try:
            subprocess.run(["apt-get", "-qq", "download", package.name], cwd=cache, check=True, capture_output=True)
            archive = next(cache.glob(f"{package.name}_*.deb"))
            subprocess.run(["dpkg", "-x", archive.name, f"{package.name}.part"], cwd=cache, check=True)
        except (OSError, subprocess.CalledProcessError, StopIteration):
            sys.exit(f"{package.name}: not downloaded; it needs apt-get of Debian 12 (apt-get update?) and dpkg")
        (cache / f"{package.name}.part").rename(target)


def pages(cache: Path, most: int, packages: tuple[Package, ...] = PACKAGES) -> Iterator[Page]:
    """At most so many pages of each package, always the same ones."""
    for package in packages:
        root = cache / package.name
        paths = [path for path in root.glob(package.pages) if path.is_file() and not path.is_symlink()]
        for path in sorted(paths, key=lambda path: zlib.crc32(path.name.encode()))[:most]:
            yield Page(f"{package.name}/{path.name}", path.read_bytes(), package)


def true_pages(cache: Path) -> Iterator[TruePage]:
    """Pages to train on: the text of each one's content."""
    for page in pages(cache, TRAINING_PAGES, TRAINING):
        content = content_of(page)
        if content is not None:
            html = f"<!doctype html><body>{content.html}".encode()
            text = page_pass(html, "http://page.invalid/", "utf-8", PassOptions(main_text=False)).text.decode()
            yield TruePage(page.name, f"http://{page.package.name}.invalid/", "documentation", page.body, text)


def squeezed(text: str) -> str:
    """Without white space and the bars between cells."""
    return "".join(text.replace("|", "").split())


def content_of(page: Page) -> Any:
    """The element that holds its content (selectolax); None without one."""
    tree = LexborHTMLParser(page.body)
    for node in tree.css(f"{page.package.without}, script, style"):
        node.decompose()
    return tree.css_first(page.package.content)


def truth(page: Page) -> Parts:
    """The parts of its content. Cells of a row are one line; a paragraph of a table belongs to its row."""
    content = content_of(page)
    parts = Parts()
    if content is None:
        return parts
    for node in content.css("pre"):
        for line in node.text().split("\n"):
            if line.strip():
                parts.code[line.rstrip()] += 1
    for node in content.css("p"):
        if len(node.text().split()) >= LEAST_WORDS and not _inside(node, ("table", "pre")):
            parts.paragraphs[squeezed(node.text())] += 1
    for node in content.css("table"):
        rows = node.css("tr")
        # A table of one row sets a note beside its sign.
        if len(rows) > 1 and not node.css("table table, pre"):
            for row in rows:
                cells = [cell for cell in row.css("td, th") if cell.text().strip()]
                if len(cells) > 1:
                    parts.rows[squeezed(row.text())] += 1
    parts.words.update(content.text(separator=" ").split())
    return parts


def _inside(node: Any, tags: tuple[str, ...]) -> bool:
    while (node := node.parent) is not None:
        if node.tag in tags:
            return True
    return False


def kept(known: Parts, answer: str) -> Parts:
    """What of a page's parts an answer has: code lines and rows as a line each, a paragraph in one piece."""
    lines = answer.split("\n")
    found = Parts()
    squeezed_lines = Counter(squeezed(line) for line in lines)
    found.code = known.code & Counter(line.rstrip() for line in lines)
    found.rows = known.rows & squeezed_lines
    whole = squeezed(answer)
    found.paragraphs = Counter({text: min(n, whole.count(text)) for text, n in known.paragraphs.items()})
    found.words = Counter(answer.replace("|", " ").split())
    return found
