"""Whole documentation sets of ten generators: where each comes from, and the element that holds a page's content.

Packages of Debian come by `apt-get download` and are unpacked; nothing is installed. Man pages are rendered by mandoc
of such a package. A set of a generator that no package holds is a site that the generator builds from the Markdown of
this repository (`pip install mkdocs-material sphinx-book-theme myst-nb`), or is left out with a line.
"""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from lxml import etree
from lxml import html as lxml_html

ROOT: Final = Path(__file__).resolve().parents[1]
MIN_CHARS: Final = 400
"""Of the content of a page that is counted: others are indexes and redirects."""
MIN_BYTES, MAX_BYTES = 2_000, 800_000
DOCUMENTATION: Final = "usr/share/doc"


class DocumentationSet(NamedTuple):
    """A set of pages."""

    generator: str
    source: str
    """The package of Debian, or the function of `BUILT` that makes it."""
    pages: str
    content: str
    """XPath of the element that holds the content."""
    without: str
    """XPath, relative to it, of what is none."""


_SPHINX: Final = './/a[contains(@class,"headerlink")]'
SETS: Final = (
    DocumentationSet("Sphinx", "python3.11-doc", f"{DOCUMENTATION}/python3.11/html/[lhtr]*/*.html",
                     '//div[@class="body"]', _SPHINX),
    DocumentationSet("MkDocs", "mkdocs-doc", f"{DOCUMENTATION}/mkdocs/html/**/*.html", '//*[@role="main"]',
                     './/*[@class="headerlink"]'),
    DocumentationSet("MkDocs Material", "material", "**/*.html", "//article", _SPHINX),
    DocumentationSet("mdBook", "rust-doc", f"{DOCUMENTATION}/rust-doc/html/[bren][emu]*[kebn]*/*.html", "//main",
                     './/*[@class="buttons"]'),
    DocumentationSet("rustdoc", "rust-doc", f"{DOCUMENTATION}/rust-doc/html/std/*/*.html",
                     '//*[@id="main-content"]',
                     './/a[@class="anchor" or contains(@class,"srclink") or @class="doc-anchor"]'
                     '|.//*[@id="toggle-all-docs" or @id="copy-path" or @class="rightside" or @class="sub-variant"]'
                     '|.//*[@class="out-of-band" or @class="hideme"]|.//a[contains(@class,"test-arrow")]'),
    DocumentationSet("javadoc", "openjdk-17-doc", f"{DOCUMENTATION}/*/api/java.base/java/**/*.html", "//main",
                     './/*[@class="sub-nav"]|.//a[@class="anchor-link"]'),
    DocumentationSet("DocBook", "postgresql-doc-15", f"{DOCUMENTATION}/postgresql-doc-15/html/*.html",
                     '//body', './/*[@class="navheader" or @class="navfooter"]|.//a[@class="id_link"]'),
    DocumentationSet("AsciiDoc", "git-doc", f"{DOCUMENTATION}/git/html/*.html", '//*[@id="content"]|//body',
                     './/*[@id="footer"]'),
    DocumentationSet("man pages", "mandoc-pages", "*.html", '//*[@class="manual-text"]',
                     './/a[@class="permalink" and not(normalize-space())]'),
    DocumentationSet("Jupyter Book", "jupyter-book", "**/*.html", "//article", _SPHINX),
    DocumentationSet("Hugo", "hugo-book", "**/*.html", "//article", './/a[@class="anchor"]'),
    DocumentationSet("Docusaurus", "docusaurus", "**/*.html", "//article",
                     './/a[contains(@class,"hash-link")]|.//nav|.//footer|.//button'),
)  # fmt: skip


class Page(NamedTuple):
    """A page and its content."""

    body: bytes
    content: Any


def fetch(cache: Path) -> list[DocumentationSet]:
    """Download, unpack and build what is not in the cache; the sets that are there then."""
    cache.mkdir(parents=True, exist_ok=True)
    found = []
    for one in SETS:
        target = cache / one.source
        if not target.exists():
            try:
                make = BUILT.get(one.source)
                make(cache, target) if make is not None else unpack(cache, one.source)
            except (OSError, subprocess.CalledProcessError, StopIteration) as error:
                print(f"{one.generator}: no set ({error})", file=sys.stderr)
                continue
        found.append(one)
    return found


def pages(cache: Path, one: DocumentationSet, most: int) -> Iterator[Page]:
    """At most so many pages with content, always the same ones."""
    root = cache / one.source
    paths = [path for path in root.glob(one.pages) if path.is_file() and not path.is_symlink()]
    count = 0
    for path in sorted(paths, key=lambda path: zlib.crc32(str(path.relative_to(root)).encode())):
        if count == most:
            return
        body = path.read_bytes()
        if MIN_BYTES < len(body) < MAX_BYTES and (content := _content(body, one)) is not None:
            count += 1
            yield Page(body, content)


def _content(body: bytes, one: DocumentationSet) -> Any:
    tree = lxml_html.fromstring(body, parser=lxml_html.HTMLParser(encoding="utf-8"))
    found = tree.xpath(one.content)
    if not found:
        return None
    content = found[0]
    for part in content.xpath(f'{one.without}|.//script|.//style|.//comment()|.//td[@class="linenos"]'):
        if part.getparent() is not None:
            part.drop_tree() if isinstance(part.tag, str) else part.getparent().remove(part)
    for end in content.xpath(".//pre//br"):
        end.tail = "\n" + (end.tail or "")
    etree.strip_tags(content, "wbr")
    return content if len(content.text_content().strip()) >= MIN_CHARS else None


def unpack(cache: Path, package: str) -> None:
    """Download a package of Debian and unpack it below `cache`."""
    subprocess.run(["apt-get", "-qq", "download", package], cwd=cache, check=True, capture_output=True)
    archive = next(cache.glob(f"{package}_*.deb"))
    subprocess.run(["dpkg", "-x", archive.name, f"{package}.part"], cwd=cache, check=True)
    (cache / f"{package}.part").rename(cache / package)


def _man_pages(cache: Path, target: Path) -> None:
    """Pages of section 2 and 3 of the C library, by mandoc."""
    for package in ("mandoc", "manpages-dev"):
        if not (cache / package).exists():
            unpack(cache, package)
    part = target.with_suffix(".part")
    part.mkdir(exist_ok=True)
    for path in sorted((cache / "manpages-dev/usr/share/man").glob("man[23]/*.gz"))[::6]:
        if path.is_symlink():
            continue
        made = subprocess.run([cache / "mandoc/usr/bin/mandoc", "-T", "html", path], capture_output=True, check=False)
        (part / f"{path.name}.html").write_bytes(made.stdout)
    part.rename(target)


def _sources(into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    (into / "index.md").write_text((ROOT / "README.md").read_text("utf-8"), "utf-8")
    for path in sorted((ROOT / "docs").glob("*.md")):
        (into / path.name).write_text(path.read_text("utf-8"), "utf-8")
    (into / "features.md").write_text(FEATURES, "utf-8")


def _material(cache: Path, target: Path) -> None:
    source = cache / "material.source"
    _sources(source / "docs")
    (source / "mkdocs.yml").write_text(MKDOCS, "utf-8")
    run = [sys.executable, "-m", "mkdocs", "build", "-q", "-d", str(target)]
    subprocess.run(run, cwd=source, check=True, capture_output=True)


def _jupyter_book(cache: Path, target: Path) -> None:
    source = cache / "jupyter-book.source"
    _sources(source)
    (source / "conf.py").write_text(SPHINX, "utf-8")
    names = "\n".join(path.stem for path in sorted(source.glob("*.md")))
    (source / "contents.rst").write_text(
        f"Contents\n========\n\n.. toctree::\n\n   {names.replace(chr(10), chr(10) + '   ')}\n"
    )
    run = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(source), str(target)]
    subprocess.run(run, check=True, capture_output=True)


MKDOCS: Final = """site_name: Documentation
theme: {name: material, features: [navigation.footer]}
repo_url: https://example.org/repository
edit_uri: edit/main/docs/
plugins: []
markdown_extensions: [admonition, footnotes, tables, def_list, attr_list, toc: {permalink: true},
  pymdownx.tasklist, pymdownx.arithmatex: {generic: true}, pymdownx.superfences, pymdownx.caret, pymdownx.tilde]
"""
SPHINX: Final = """project = "Documentation"
extensions = ["myst_nb"]
html_theme = "sphinx_book_theme"
html_theme_options = {"repository_url": "https://github.com/example/example", "use_edit_page_button": True,
                      "use_download_button": True, "use_source_button": True}
myst_enable_extensions = ["dollarmath", "deflist", "tasklist", "colon_fence"]
root_doc = "contents"
"""
FEATURES: Final = """# What a page can have

Water is H~2~O; the area is r^2^, and the energy $E = mc^2$ is that of [^1] a body at rest.

[^1]: A note that says where this was found, in enough words to be a sentence of its own.

!!! note
    An admonition has a title and a text, which stand together on a coloured ground.

Term of the list
:   What the term means, in a sentence that is long enough to count as a paragraph.

- [x] a task that is done, with the words that say what it was
- [ ] a task that is open, with the words that say what is to do

| Name | Meaning of the name |
| --- | --- |
| first | The cell of the first row, which has a `code` in it |
| second | The cell of the second row, which has a [link](index.md) in it |
"""
BUILT: Final[dict[str, Callable[[Path, Path], None]]] = {
    "mandoc-pages": _man_pages,
    "material": _material,
    "jupyter-book": _jupyter_book,
}
