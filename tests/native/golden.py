"""Golden vectors of the native core: what it made of fixed URLs and pages when they were written.

`python -m tests.native.golden` writes tests/data/native/golden.json again; the diff shows what a change of the core
changes. The pages are in this file, so that a reader sees what each of them is about.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import struct
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.native import test_main_text as pages

PATH = Path(__file__).parents[1] / "data" / "native" / "golden.json"
BASE = "https://www.example.org/dir/page.html?q=1"
PAGES: dict[str, bytes] = {
    "article": pages.ARTICLE,
    "forum": pages.FORUM,
    "documentation": pages.DOCUMENTATION,
    "chinese": pages.CHINESE,
    "bare": pages.BARE,
    "head": b"<html lang=pt-BR><head><title> A &amp; B\n </title><base href=/b/>"
    b"<link rel='x CANONICAL' href=c?utm_id=1><meta name=robots content='NoIndex'><meta name=nephila content=nofollow>"
    b"<meta name=description content=' d '>"
    b"<meta property=og:type content=article><meta http-equiv=refresh content='3; url=\"next\"'></head><p>text",
    "links": b"<nav><a href=/>home</a></nav><p>see <a rel=nofollow href='p?b=2&amp;a=1&fbclid=3#f'>this</a>, "
    b"<a href=//b.test:443/%7Euser>that</a>, <area href=q><iframe src=r></iframe><a href=mailto:x@y>m</a>"
    b"<a href='http://['>bad</a><a href='p?a=1&b=2'>again</a>",
    "foreign": b"<svg><title>s</title><a href=1><text>t</text></a></svg><math><mi><a href=2>m</a></mi></math>"
    b"<template><a href=3></template><noscript><a href=4>n</a></noscript><select><option><a href=5>o</select>",
    "frames": b"<frameset><frame src=1><frame src=2></frameset>",
    "tables": b"<table><a href=1>x</a><tr><td>a<td>b<a href=2>c</table><pre>\n 1\n\n  2 </pre><ul><li>i<li>j</ul>",
    "broken": b"<p><b><i>x<p>y</b></i><a href=1<b>z</a href='2'>&notin; &#x41 &#0;\0<!-- --!><a href=3>\xff\xfe",
}


def urls() -> list[str]:
    """Written ones, then random ones over the characters that the parser treats specially."""
    rng = random.Random(2)
    hosts = [
        "a.test",
        "A.Test:80",
        "u:p@b.test:8443",
        "xn--bcher-kva.test",
        "b\u00fccher.test",
        "0x7f.1",
        "[::1]:81",
        "a..b",
    ]
    letters = "ab/.?#&=%2eE7~^|{}`'\\ \u00e9\u65e5;:@+$,!*()[]-_"
    written = [
        "http://a.test/%7Euser/%2D%2E?%61=%41&%2D",
        "https://a.test/?utm_source=1&x&srsltid=2&a=3&A=4",
        "http://a.test/%%41?%2541=%c3%BC&&b&a",
    ]
    for _ in range(150):
        tail = "".join(rng.choice(letters) for _ in range(rng.randrange(24)))
        written.append(f"{rng.choice(['http', 'https', 'HTTP'])}://{rng.choice(hosts)}/{tail}")
    return written


def identity(core: ModuleType, url: str) -> list[str]:
    """Href, host key, canonical URL and fingerprint; nothing for a URL that is refused."""
    try:
        parts = core.parse_url(url)
    except core.UrlError:
        return []
    return [parts.href, parts.host_key, parts.canonical, parts.fingerprint.hex()]


def essentials(core: ModuleType, body: bytes) -> dict[str, Any]:
    """What both implementations agree on about a page."""
    page = core.page_pass(body, BASE, "utf-8")
    ends = (0, *struct.unpack(f"<{page.link_count}I", page.link_ends))
    names = ("title", "lang", "base", "canonical", "robots", "description", "refresh", "bad_links")
    return {name: getattr(page, name) for name in names} | {
        "meta": [list(pair) for pair in page.meta],
        "links": [page.link_urls[start:end].decode() for start, end in itertools.pairwise(ends)],
        "fingerprints": page.fingerprints.hex(),
        "nofollow": [flag & 1 for flag in page.link_flags],
    }


def all_of(core: ModuleType, body: bytes) -> dict[str, Any]:
    """Everything that the core says about a page."""
    page = core.page_pass(body, BASE, "utf-8")
    return {
        "text": page.text.decode(),
        "lines": page.text_lines.hex(),
        "main_text": page.main_text.decode(),
        "anchors": page.anchors.decode(),
        "flags": page.link_flags.hex(),
        "depth": page.depth,
    }


MARKUP: tuple[bytes, ...] = (
    *(b"<%s>" % name for name in b"p b i em strong code a kbd sup sub ul ol dl li dt dd h1 h2 pre xmp br hr".split()),
    *(b"</%s>" % name for name in b"p b i em strong code a sup ul ol dl h2 pre xmp table td div figure math".split()),
    *(b"<%s>" % name for name in b"table tr td th caption blockquote figure article nav math template".split()),
    b"<a href=/x?a=1&amp;b=2>",
    b"<a href='#fn1'>",
    b"<ol start=3>",
    b"<li value=7 id=fn2>",
    b"<th colspan=2 rowspan=3>",
    b"<td class=linenos>",
    b"<div class=highlight-python>",
    b"<div class='admonition note'>",
    b"<p class=admonition-title>",
    b"<span class='math inline'>",
    b"<figure><figcaption>",
    b"<input type=checkbox checked>",
    b"<img src=a.png alt='x&amp;y'>",
    b"<img srcset='a 1x, b 2x'>",
    b"<a href=#t>\xc2\xb6</a>",
    b"\n  \n",
    b" ",
)
"""Pieces of pages whose structures have golden values."""


def structures(core: ModuleType) -> list[str]:
    """Hashes over the blocks of pages of any markup, 25 pages each, beside main texts of any lines, without a model."""
    rng, found = random.Random(50), []
    words = (
        b" some words",
        b"x",
        b" and. ",
        b"",
        b"",
        b"\xc3\xa9t\xc3\xa9 and a sentence that is long enough to be found",
    )
    for _ in range(40):
        digest = hashlib.sha256()
        for _ in range(25):
            pieces = rng.choices(MARKUP, k=rng.randrange(90))
            body = b"".join(piece + rng.choice(words) for piece in pieces)
            main = [line for line in range(len(pieces)) if rng.random() < 0.5]
            text, structure = core.structure_by(body, "utf-8", main)
            digest.update(text + core.blocks(structure, text, BASE) + core.markdown(structure, text, BASE))
        found.append(digest.hexdigest()[:16])
    return found


def vectors(core: ModuleType) -> dict[str, Any]:
    """All vectors."""
    return {
        "urls": {url: identity(core, url) for url in urls()},
        "pages": {name: essentials(core, body) for name, body in PAGES.items()},
        "core": {name: all_of(core, body) for name, body in PAGES.items()},
        "structures": structures(core),
    }


if __name__ == "__main__":
    from nephila.native import _core

    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(json.dumps(vectors(_core), indent=1, ensure_ascii=False) + "\n", "utf-8")
