"""Link sets and titles against two full HTML parsers: html5lib's tree and lexbor's.

Pages: every readability page, and every tree-construction snippet of html5lib-tests, each twice: with an href on every
tag that could be a link, and with a link and a title put behind it, which shows whether the parser's state is right.
"""

from __future__ import annotations

import re
import struct
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from nephila import native
from nephila.native.refresh import refresh_target

pytestmark = pytest.mark.conformance

URL = "http://doc.test/d/page.html"
SPACES = " \t\n\r\f"
HTML = "{http://www.w3.org/1999/xhtml}"
CANDIDATE = re.compile(r"(<(?:a|area|iframe|frame)(?=[\s>]))", re.IGNORECASE)
ATTRIBUTES = {"a": "href", "area": "href", "iframe": "src", "frame": "src"}
Found = tuple[set[str], str]


def canonical(hrefs: list[str | None], base: str | None) -> set[str]:
    """Canonical URLs of raw hrefs: what the page pass takes for one link."""
    document = URL
    if base is not None:
        try:
            document = native.parse_url(base, URL).href
        except native.UrlError:
            pass
    found = set()
    for href in hrefs:
        try:
            found.add(native.parse_url(href or "", document).canonical)
        except native.UrlError:
            continue
    return found


def collapse(text: str) -> str:
    """A title in the form and with the whitespace that the page pass leaves."""
    return re.sub(f"[{SPACES}]+", " ", native.spelled(text.encode()).decode()).strip(" ")


def refresh(content: str | None) -> list[str | None]:
    """The target of a meta refresh, if it has one."""
    target = refresh_target((content or "").strip(SPACES))
    return [] if target is None else [target]


def html5lib_finds(html: str) -> Found:
    """Links and title of html5lib's tree; `a` counts in svg, too."""
    import html5lib

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = html5lib.parse(html)
    hrefs: list[str | None] = []
    base = title = None
    for element in tree.iter():
        if not isinstance(element.tag, str):
            continue
        name = element.tag.rpartition("}")[2]
        is_html = element.tag.startswith(HTML)
        value = element.get(ATTRIBUTES.get(name, ""))
        if value is not None and (is_html or name == "a"):
            hrefs.append(value)
        elif is_html and name == "base" and base is None:
            base = element.get("href")
        elif is_html and name == "title" and title is None:
            title = collapse("".join(element.itertext()))
        elif is_html and name == "meta" and (element.get("http-equiv") or "").lower() == "refresh":
            hrefs += refresh(element.get("content"))
    return canonical(hrefs, base), title or ""


def lexbor_finds(html: str) -> Found:
    """Links and title of lexbor's tree, by CSS, which does not see namespaces."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    hrefs: list[str | None] = []
    for name, attribute in ATTRIBUTES.items():
        hrefs += [node.attributes[attribute] for node in tree.css(f"{name}[{attribute}]")]
    for node in tree.css("meta"):
        if (node.attributes.get("http-equiv") or "").lower() == "refresh":
            hrefs += refresh(node.attributes.get("content"))
    base = tree.css_first("base[href]")
    title = tree.css_first("title")
    return canonical(hrefs, (base.attributes["href"] or "") if base else None), collapse(title.text()) if title else ""


def ours(core: ModuleType, html: str) -> Found:
    """Links and title of the page pass."""
    page: Any = core.page_pass(html.encode(), URL, "utf-8")
    ends = struct.unpack(f"<{page.link_count}I", page.link_ends)
    hrefs: list[str | None] = []
    hrefs += [page.link_urls[start:end].decode() for start, end in zip((0, *ends), ends, strict=False)]
    return canonical(hrefs, None), page.title


def readability(data: Path) -> Iterator[tuple[str, str]]:
    """Name and HTML of every readability page."""
    path = data / "readability-test-pages" / "test-pages.tar.xz"
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.name.endswith("source.html") else None
            if stream:
                yield Path(member.name).parent.name, stream.read().decode("utf-8", "replace")


def snippets(data: Path) -> Iterator[tuple[str, str]]:
    """Name and HTML of every snippet that is a document and wants no scripting."""
    folder = data / "html5lib-tests" / "tree-construction"
    for path in sorted(folder.glob("*.dat")):
        text = path.read_bytes().decode()
        for number, part in enumerate(("\n" + text).split("\n#data\n")[1:]):
            html, _, rest = part.partition("\n#errors")
            if "\n#document-fragment" in rest or "#script-on" in rest:
                continue
            pieces = CANDIDATE.split(html)
            # Pieces alternate: text, start of a tag, text, ...
            html = pieces[0] + "".join(
                f"{tag} href=l{place} src=s{place}{text}"
                for place, (tag, text) in enumerate(zip(pieces[1::2], pieces[2::2], strict=True))
            )
            yield f"{path.stem}#{number}", html
            yield f"{path.stem}#{number}+", html + "<a href=end>x<title>T</title>"


# html5lib 1.1 (2020) follows the standard of its day. A name listed here that no longer differs fails the test.
KNOWN_HTML5LIB: dict[str, str] = {
    "1.1 keeps svg and math open at </p> and </br>, and across a table cell": """
        namespace-sensitivity#0+ tests26#16+ tests26#17+ tests26#18+ tests26#19+
    """,
    "1.1 drops most tags in <select>; the standard lets them in since 2025": """
        plain-text-unsafe#6+ tests1#34+ tests17#5+ tests17#6+ tests17#7+ tests17#8+ tests17#9+ tests17#10+
        tests17#11+ tests18#14+ tests18#27+ tests18#28+ tests18#29+ tests19#27+ tests19#28+ tests2#36+
        tests2#38+ webkit02#25+ webkit02#26+ webkit02#27+ webkit02#28+ webkit02#29+ webkit02#30+ webkit02#31+
        webkit02#32+ webkit02#33+ webkit02#34+ webkit02#35+ webkit02#44+ webkit02#45+ webkit02#46+
        webkit02#47+
    """,
    "1.1 does not know <template> and puts its contents into the document": """
        template#6+ template#32+ template#38+ template#41+ template#70+ template#71+ template#73+ template#74+
        template#75+ template#76+ template#77+ template#79+ template#80+ template#81+ template#82+
        template#83+ template#84+ template#85+ template#86+ template#87+ template#88+ template#89+
        template#91+ template#92+ template#98+ template#100+ template#102+ template#103+ template#107
        template#107+
    """,
}

KNOWN_READABILITY = {"article-author-tag": "links in <template>, which html5lib 1.1 does not know"}


def test_readability_pages(core: ModuleType, conformance_data: Path) -> None:
    """On every real page, link set and title are html5lib's and lexbor's."""
    count, differ, lexbor = 0, set(), []
    for name, html in readability(conformance_data):
        count += 1
        found = ours(core, html)
        if found != html5lib_finds(html):
            differ.add(name)
        if found != lexbor_finds(html):
            lexbor.append(name)
    print(f"readability: html5lib {count - len(differ)}/{count}, lexbor {count - len(lexbor)}/{count}")
    assert lexbor == []
    assert differ == set(KNOWN_READABILITY)
    assert count == 130


def test_snippets_against_html5lib(core: ModuleType, conformance_data: Path) -> None:
    """On every snippet, link set and title are html5lib's, but for those listed."""
    count, differ = 0, set()
    for name, html in snippets(conformance_data):
        count += 1
        if ours(core, html) != html5lib_finds(html):
            differ.add(name)
    print(f"snippets: html5lib {count - len(differ)}/{count}")
    assert sorted(differ) == sorted(name for names in KNOWN_HTML5LIB.values() for name in names.split())


def test_snippets_against_lexbor(core: ModuleType, conformance_data: Path) -> None:
    """On every snippet, link set and title are lexbor's (titles where there is no svg or math to hide one)."""
    count, differ = 0, []
    for name, html in snippets(conformance_data):
        count += 1
        (links, title), (their_links, their_title) = ours(core, html), lexbor_finds(html)
        foreign = re.search("<(svg|math)", html, re.IGNORECASE)
        if links != their_links or (title != their_title and not foreign):
            differ.append(name)
    print(f"snippets: lexbor {count - len(differ)}/{count}")
    assert differ == []
    assert count > 3000
