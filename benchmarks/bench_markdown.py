"""Markdown of documentation pages beside trafilatura's: what is kept of headings, code, tables, lists and links.

`python -m benchmarks.bench_markdown DIR`: DIR has unpacked documentation packages of Debian (`apt-get download
python3.11-doc git-doc postgresql-doc-15 python-django-doc nodejs-doc rust-doc`, `dpkg-deb -x FILE DIR/PACKAGE`). The
truth is what stands in the element that holds a page's content, read by lxml; the Markdown is rendered by markdown-it,
and what comes out is read in the same way. A heading counts with its level, a line of code with its indentation, a row
with all its cells, an item with its depth. `extra` is the share of words that do not stand in that element.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lxml import etree
from lxml import html as lxml_html

CONTENT = {
    "python3.11-doc": '//div[@role="main"]|//div[@class="body"]',
    "python-django-doc": '//*[@id="yui-main"]',
    "git-doc": "//body",
    "postgresql-doc-15": '//body/div[not(starts-with(@class,"nav"))]',
    "nodejs-doc": '//*[@id="apicontent"]',
    "rust-doc": "//main",
}
WHAT = ("headings", "code lines", "table rows", "list items", "links")
SIGNS = re.compile(r"[¶§#\s]+$")


def words(text: str) -> str:
    """Letters and digits alone, so that quotes and spaces make no difference."""
    return "".join(re.findall(r"\w+", SIGNS.sub("", text))).lower()


def units(root: Any) -> dict[str, Counter[Any]]:
    """What is counted of a piece of HTML."""
    found: dict[str, Counter[Any]] = {name: Counter() for name in WHAT}
    for node in root.iter():
        tag = node.tag
        if not isinstance(tag, str):
            continue
        if re.fullmatch("h[1-6]", tag):
            if text := words(node.text_content()):
                found["headings"][(tag, text)] += 1
        elif tag == "pre":
            for line in node.text_content().split("\n"):
                if line.strip():
                    found["code lines"][line.rstrip()] += 1
        elif tag == "tr":
            cells = tuple(words(cell.text_content()) for cell in node if cell.tag in ("td", "th"))
            nested = node.xpath("ancestor-or-self::*//table//table|.//pre|.//h1|.//h2|.//h3|.//h4")
            if len(cells) > 1 and any(cells) and not nested:
                found["table rows"][cells] += 1
        elif tag == "li":
            own = node.text_content()
            first = words(own)[:30]
            if first:
                found["list items"][(len(node.xpath("ancestor::ul|ancestor::ol")), first)] += 1
        elif tag == "a" and node.get("href") and words(node.text_content()):
            found["links"][words(node.text_content())] += 1
    return found


def kept(truth: dict[str, Counter[Any]], got: dict[str, Counter[Any]], dl: int) -> dict[str, tuple[int, int]]:
    """(kept, in all) of each kind; `dl`: lists of descriptions are lists there."""
    result = {name: ((truth[name] & got[name]).total(), truth[name].total()) for name in WHAT}
    if dl:
        hit = 0
        left = Counter(got["list items"])
        for (depth, first), count in truth["list items"].items():
            for _ in range(count):
                deep = next((d for d in range(depth, depth + 6) if left[(d, first)] > 0), None)
                if deep is not None:
                    left[(deep, first)] -= 1
                    hit += 1
        result["list items"] = (hit, truth["list items"].total())
    return result


def ours(body: bytes, url: str) -> str:
    """`nephila extract --markdown`."""
    from nephila.parser.single.extract import extract

    return str(extract(body, url, markdown=True)["markdown"])


def theirs(body: bytes, url: str) -> str:
    """trafilatura's with everything switched on."""
    import trafilatura

    return (
        trafilatura.extract(
            body, url=url, output_format="markdown", include_links=True, include_tables=True, include_formatting=True
        )
        or ""
    )


def pages(place: Path, package: str, count: int) -> list[tuple[bytes, Any]]:
    """Some pages and their content."""
    names = sorted(str(path) for path in (place / package).rglob("*.html") if 4_000 < path.stat().st_size < 600_000)
    random.Random(42).shuffle(names)
    found = []
    for name in names:
        body = Path(name).read_bytes()
        root = lxml_html.fromstring(body, parser=lxml_html.HTMLParser(encoding="utf-8"))
        content = root.xpath(CONTENT[package])
        if not content or len(content[0].text_content()) < 1_500:
            continue
        for part in content[0].xpath('.//script|.//style|.//*[starts-with(@class,"nav")]|.//td[@class="linenos"]'):
            part.drop_tree()
        for sign in content[0].xpath('.//a[@class="headerlink" or @class="mark" or @class="anchor"]'):
            sign.drop_tree()
        for end in content[0].xpath(".//pre//br"):
            end.tail = "\n" + (end.tail or "")
        found.append((body, content[0]))
        if len(found) == count:
            break
    return found


def measure(sets: dict[str, list[tuple[bytes, Any]]], make: Callable[[bytes, str], str]) -> None:
    """One table: packages by what is kept."""
    from markdown_it import MarkdownIt

    render = MarkdownIt("commonmark", {"html": True}).enable("table").render
    total = {name: [0, 0] for name in WHAT}
    seconds = extra = said = count = 0.0
    for package, chosen in sets.items():
        sums = {name: [0, 0] for name in WHAT}
        more = all_words = 0
        for body, content in chosen:
            began = time.thread_time()
            text = make(body, "http://docs.example/page.html")
            seconds += time.thread_time() - began
            count += 1
            root = lxml_html.fromstring(f"<div>{render(text)}</div>") if text else etree.Element("div")
            for name, (hit, whole) in kept(units(content), units(root), 1).items():
                sums[name][0] += hit
                sums[name][1] += whole
            truth = Counter(re.findall(r"\w+", content.text_content().lower()))
            got = Counter(re.findall(r"\w+", root.text_content().lower() if text else ""))
            more += (got - truth).total()
            all_words += got.total()
        extra += more
        said += all_words
        for name in WHAT:
            total[name][0] += sums[name][0]
            total[name][1] += sums[name][1]
        show(package, len(chosen), sums, more, all_words)
    show("all", int(count), total, extra, said)
    print(f"| {1000 * seconds / count:.1f} ms per page |")


def show(name: str, count: int, sums: dict[str, list[int]], more: float, said: float) -> None:
    """A row."""
    cells = " | ".join(f"{100 * a / b:.1f} % of {b}" if b else "-" for a, b in sums.values())
    print(f"| {name} ({count}) | {cells} | {100 * more / max(said, 1):.1f} % |", flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("place", type=Path)
    parser.add_argument("--pages", type=int, default=25)
    parser.add_argument("--rivals", action="store_true")
    arguments = parser.parse_args()
    sets = {
        name: pages(arguments.place, name, arguments.pages) for name in CONTENT if (arguments.place / name).is_dir()
    }
    for name, make in (("nephila", ours), ("trafilatura", theirs)) if arguments.rivals else (("nephila", ours),):
        print(f"\n{name}\n| pages | {' | '.join(WHAT)} | extra |\n|{' --- |' * (len(WHAT) + 2)}")
        measure(sets, make)


if __name__ == "__main__":
    main()
