"""Markdown of documentation pages beside rivals: what is kept of headings, code, paragraphs, table cells and links, and
how many lines of a page are boilerplate.

`python -m benchmarks.bench_markdown CACHE [--rivals] [--pages 25] [--fixtures FILE]`: CACHE is a directory outside of
the repository; the sets come there (documentation_sets.py). The truth is what stands in the element that holds a page's
content, read by lxml; the Markdown is rendered by markdown-it and read in the same way. A heading counts with its
level, a line of code with its indentation, a cell and a paragraph by their words. A line is boilerplate if most of its
words stand nowhere in the content; trafilatura has the page, markdownify the content itself (it does not look for one).
With `--fixtures` the pages are Defuddle's, and their truth is its Markdown, which has headings of other levels: they
count without.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lxml import html as lxml_html

from benchmarks.documentation_sets import Page, fetch, pages
from benchmarks.maintext_truth import defuddle_files

WHAT = ("headings", "code lines", "paragraphs", "cells", "links")
SIGNS = re.compile(r"[¶§#⚓\s]+$")
BAR = {"prev", "previous", "next", "up", "home"}
"""Words of bars of navigation."""
LEAST_WORDS = 5
"""A shorter paragraph may stand in a page by chance."""
URL = "http://docs.example/page.html"
Make = Callable[[Page], str]


def words(text: str) -> str:
    """Letters and digits alone, so that quotes and spaces make no difference."""
    return "".join(re.findall(r"\w+", SIGNS.sub("", text))).lower()


def units(root: Any, *, levels: bool = True) -> dict[str, Counter[Any]]:
    """What is counted of a piece of HTML; headings with their level or without."""
    found: dict[str, Counter[Any]] = {name: Counter() for name in WHAT}
    for node in root.iter():
        tag = node.tag
        if not isinstance(tag, str):
            continue
        if re.fullmatch("h[1-6]", tag):
            if text := words(node.text_content()):
                found["headings"][(tag if levels else "", text)] += 1
        elif tag == "pre" and not node.xpath(".//pre"):
            for line in node.text_content().split("\n"):
                if line.strip():
                    found["code lines"][line.rstrip()] += 1
        elif tag in ("td", "th"):
            # A cell with blocks that no cell of Markdown can have is none.
            text = words(node.text_content())
            if text and not node.xpath("ancestor-or-self::*//table//table|.//pre|.//h1|.//h2|.//h3|.//h4"):
                found["cells"][text] += 1
        elif tag == "p":
            if len(node.text_content().split()) >= LEAST_WORDS and not node.xpath("ancestor::table|ancestor::pre"):
                found["paragraphs"][words(node.text_content())] += 1
        elif tag == "a" and node.get("href") and words(node.text_content()) and not is_permalink(node):
            found["links"][words(node.text_content())] += 1
    return found


def is_permalink(link: Any) -> bool:
    """Whether a link is that of a heading to its own page: no link for a reader."""
    headings = "ancestor::*[self::h1 or self::h2 or self::h3 or self::h4 or self::h5 or self::h6]"
    return bool(link.get("href").startswith("#") and link.xpath(headings))


def boilerplate(text: str, content: Any) -> int:
    """Lines of the Markdown of which more than half of the words are not in the content (an element)."""
    # A word may be cut by spans, and two words of two elements may have no space between them.
    known = {word for gap in ("", " ") for word in re.findall(r"\w+", gap.join(content.itertext()).lower())}
    count = 0
    for line in text.lower().split("\n"):
        if line.lstrip("> ").startswith("```"):
            continue
        # Pictures, targets of links, tags and escapes are no words.
        line = re.sub(r"!\[[^]]*\]\([^)]*\)|\]\([^)]*\)|<[^>]*>", " ", line)
        line = re.sub(r"\\(?=[^\w\s]|_)", "", line)
        said = re.findall(r"\w+", line)
        count += bool(said) and 2 * sum(word not in known for word in said) > len(said)
        # The words of a bar may stand in the content, too.
        count += len(said) > 0 and set(said) <= BAR
    return count


def ours(page: Page) -> str:
    """From the structure that a row stores."""
    from nephila.native import markdown, page_pass

    found = page_pass(page.body, URL, "utf-8")
    return markdown(found.structure, found.main_text or found.text, URL).decode()


def trafilatura_markdown(page: Page) -> str:
    """With everything switched on."""
    import trafilatura

    return (
        trafilatura.extract(
            page.body, url=URL, output_format="markdown", include_links=True, include_tables=True,
            include_formatting=True,
        )
        or ""
    )  # fmt: skip


def markdownify_markdown(page: Page) -> str:
    """Of the content alone."""
    import markdownify

    return str(markdownify.markdownify(lxml_html.tostring(page.content, encoding="unicode"), heading_style="ATX"))


def html_to_markdown(page: Page) -> str:
    """Of the whole page, with what the program leaves out of itself."""
    import html_to_markdown

    return str(html_to_markdown.convert(page.body.decode("utf-8", "replace")).content or "")


def rendered(text: str) -> Any:
    """The element of a piece of Markdown."""
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return lxml_html.fromstring(f"<div>{html}</div>" if text.strip() else "<div></div>")


RIVALS: dict[str, Make] = {
    "trafilatura": trafilatura_markdown,
    "markdownify (content)": markdownify_markdown,
}
FIXTURE_RIVALS: dict[str, Make] = {"trafilatura": trafilatura_markdown, "html-to-markdown": html_to_markdown}


def measure(sets: dict[str, list[Page]], make: Make, *, levels: bool = True) -> None:
    """One table: sets by what is kept."""
    total: Counter[str] = Counter()
    for generator, chosen in sets.items():
        sums: Counter[str] = Counter()
        for page in chosen:
            began = time.thread_time()
            text = make(page)
            sums["ms"] += round(1e6 * (time.thread_time() - began))
            root = rendered(text)
            truth, got = units(page.content, levels=levels), units(root, levels=levels)
            for name in WHAT:
                # A line of code may stand in a paragraph of the truth, and a paragraph in an item that is tight.
                sums[name] += (truth[name] & got[name]).total()
                sums[f"all {name}"] += truth[name].total()
            if lost := truth["paragraphs"] - got["paragraphs"]:
                whole = words(root.text_content())
                sums["paragraphs"] += sum(count for text, count in lost.items() if text in whole)
            sums["lines"] += boilerplate(text, page.content)
            sums["pages"] += 1
        total += sums
        show(generator, sums)
    show("all", total)


def show(name: str, sums: Counter[str]) -> None:
    """A row."""
    whole = [(sums[one], sums[f"all {one}"]) for one in WHAT]
    cells = [f"{kept / known:.3f} of {known}" if known else "-" for kept, known in whole]
    count = max(sums["pages"], 1)
    lines, ms = sums["lines"] / count, sums["ms"] / count / 1000
    print(f"| {name} ({sums['pages']}) | {' | '.join(cells)} | {lines:.2f} | {ms:.2f} |", flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--pages", type=int, default=25, help="of each set")
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--only", default="", help="one generator")
    parser.add_argument("--fixtures", type=Path, help="Defuddle's pages instead")
    arguments = parser.parse_args()
    if arguments.fixtures:
        files = defuddle_files(arguments.fixtures)
        sets = {"Defuddle": [Page(body, rendered(markdown)) for _, body, markdown in files]}
        print_tables(sets, FIXTURE_RIVALS if arguments.rivals else {}, levels=False)
        return
    chosen = [one for one in fetch(arguments.cache) if arguments.only in ("", one.generator)]
    sets = {one.generator: list(pages(arguments.cache, one, arguments.pages)) for one in chosen}
    print_tables(sets, RIVALS if arguments.rivals else {}, levels=True)


def print_tables(sets: dict[str, list[Page]], rivals: dict[str, Make], *, levels: bool) -> None:
    """A table for each program."""
    for name, make in {"nephila": ours, **rivals}.items():
        print(f"\n{name}\n\n| set (pages) | {' | '.join(WHAT)} | boilerplate lines/page | ms/page |")
        print(f"|{' --- |' * (len(WHAT) + 3)}")
        measure(sets, make, levels=levels)


if __name__ == "__main__":
    main()
