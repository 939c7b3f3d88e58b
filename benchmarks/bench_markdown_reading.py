"""Pages of third parties whose Markdown, read by CommonMark, has the words, links, code and lists of their structure.

usage: python -m benchmarks.bench_markdown_reading [--pages 2000] [--show 3]

The pages are those of the conformance data: whole pages of the web first, then documents of html5lib-tests. Each is
taken as main text as a whole. Rendered by markdown-it (CommonMark with tables and struck text), every character is
compared with those of the page's blocks, with heading, code, cell and the numbers of lists and quotes around it, and so
are the links. Formulas and notes are no CommonMark: pages with some are not compared.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tarfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from nephila.native import _core

from tests.acceptance import locate
from tests.native.markdown_reading import Reading, absolute, rendered

URL = "http://pages.example/a/"
TASK = re.compile(r"^([ >]*(?:[-*] |\d+[.)] )*[-*] )\[[ x]\] ", re.M)
INVISIBLE = frozenset("\u00ad\u200b\ufeff")
Place = tuple[str, int, int]
"""Heading, code, cell or text; lists and quotes around it."""


def bodies(data: Path) -> Iterator[tuple[str, bytes]]:
    """Name and body of each page."""
    for path in sorted(data.glob("wcxb-dev/html/*.html.gz")):
        yield path.name, gzip.decompress(path.read_bytes())
    for archive in ("readability-test-pages", "defuddle-fixtures", "trafilatura-eval-dev"):
        for path in sorted(data.glob(f"{archive}/**/*")):
            if path.name.endswith((".tar.xz", ".tar.gz")):
                with tarfile.open(path) as files:
                    for member in files:
                        file = files.extractfile(member) if member.name.endswith((".html", ".htm")) else None
                        if file:
                            yield member.name, file.read()
            elif path.name.endswith(".html.gz"):
                yield path.name, gzip.decompress(path.read_bytes())
            elif path.suffix == ".html":
                yield path.name, path.read_bytes()
    for path in sorted(data.glob("html5lib-tests/**/*.dat")):
        for number, case in enumerate(path.read_bytes().split(b"#data\n")[1:]):
            yield f"{path.name} {number}", case.partition(b"\n#errors")[0]


def characters_of(blocks: list[dict[str, Any]]) -> list[tuple[str, Place]]:
    """Of the structure."""
    found: list[tuple[str, Place]] = []
    for block in blocks:
        level = f"h{block['level']}" if block["kind"] == "heading" else "code" if block["kind"] == "code" else "text"
        around = (block.get("list", 0), block.get("quote", 0))
        if "rows" in block:
            found += [(c, ("cell", *around)) for row in block["rows"] for cell in row for c in _visible(cell["text"])]
        else:
            found += [(c, (level, *around)) for c in _visible(block["text"])]
    return found


def _visible(text: str) -> Iterator[str]:
    return (c for c in text if not c.isspace() and c.isprintable() and c not in INVISIBLE)


def places_of(reading: Reading) -> list[tuple[str, Place]]:
    """Of rendered Markdown."""
    found = []
    for c, place in reading.characters:
        last = place.blocks[-1] if place.blocks else ""
        kind = "cell" if last.startswith("cell") else "code" if last == "pre" else last if last[:1] == "h" else "text"
        lists = sum(name[:2] in ("ul", "ol") for name in place.blocks)
        if c.isprintable():
            found.append((c, (kind, lists, place.blocks.count("blockquote"))))
    return found


def links_of(blocks: list[dict[str, Any]]) -> list[str]:
    """URLs of the links with text, in order, each once in a row."""
    parts = [
        part for block in blocks for part in ([c for row in block["rows"] for c in row] if "rows" in block else [block])
    ]
    return [link["url"] for part in parts for link in part.get("links", ()) if link["text"].strip()]


def main() -> None:
    """Read the arguments and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--show", type=int, default=3, help="pages that differ, printed")
    arguments = parser.parse_args()
    pages = same = nested = empty = beyond = linked = same_links = size = 0
    for name, body in islice(bodies(locate()), arguments.pages):
        pages += 1
        text, structure = _core.structure_by(body, "utf-8", [])
        markdown = _core.markdown(structure, text, URL).decode()
        if not markdown:
            empty += 1
            continue
        # The box of a task is no text.
        markdown = TASK.sub(r"\1", markdown)
        blocks = json.loads(_core.blocks(structure, text, URL))
        ours, again = characters_of(blocks), Reading(rendered(markdown), URL)
        theirs = places_of(again)
        if "[^" in markdown or "$" in markdown or any(block["kind"] == "formula" for block in blocks):
            beyond += 1
            continue
        size += len(ours)
        nested += ours == theirs
        # Text in a list, but in no item, is shown without a marker.
        ours, theirs = ([(c, (place[0], 0, place[2])) for c, place in some] for some in (ours, theirs))
        if ours == theirs:
            same += 1
        else:
            at = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), -1)
            if arguments.show > 0:
                arguments.show -= 1
                around = ["".join(c for c, _ in some[max(at - 30, 0) : at + 30]) for some in (ours, theirs)]
                print(name, at, len(ours), len(theirs), ours[at], theirs[at] if at < len(theirs) else "", around)
        wanted = [absolute(url, URL) for url in links_of(blocks)]
        found = [absolute(url, URL) for url in again.links()]
        linked += 1
        same_links += set(wanted) <= set(found)
    print(f"pages {pages}, without text {empty}, with formulas, notes or dollars {beyond}")
    compared = pages - empty - beyond
    print(f"same characters in the same places: {same} of {compared} pages ({size} characters)")
    print(f"and at the same depth of lists: {nested}")
    print(f"all links: {same_links} of {linked} pages")


if __name__ == "__main__":
    main()
