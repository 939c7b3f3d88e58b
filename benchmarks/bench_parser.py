"""What parsing a page costs: one table, rivals beside.

    python -m benchmarks.bench_parser [PAGE...]

Cost: CPU-ms of a page of 79 KB (and of the files named), the least of some rounds: disturbances only make a round
longer. Each line names what it takes from the page, with the number of links and characters. Libraries that are absent
are named. Quality of main text: `bench_quality`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROUNDS = 9
ROUND_S = 0.05
URL = "https://www.example.org/2026/10/page"


class Taken(NamedTuple):
    """What came of a page; -1 and "" where a row does not take it."""

    links: int
    title: str
    text_chars: int


Work = Callable[[bytes], Taken]


def least_ms(work: Callable[..., object]) -> float:
    """CPU-ms of a call: the least of the means of `ROUNDS` rounds of `ROUND_S` each."""
    work()
    start = time.process_time()
    work()
    calls = max(1, int(ROUND_S / max(time.process_time() - start, 1e-6)))
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(calls):
            work()
        best = min(best, (time.process_time() - start) / calls)
    return 1000 * best


# ---- ours


def _pass(main_text: bool) -> Work:
    from nephila.native import PassOptions, page_pass, sniff_encoding
    from nephila.parser.page.charset import encoding_of

    def work(body: bytes) -> Taken:
        found = page_pass(body, URL, encoding_of(body, "", sniff_encoding), PassOptions(main_text=main_text))
        # Attributes are made when they are read: a crawl reads these.
        taken = (found.lang, found.description, found.canonical, found.robots, found.meta, found.refresh)
        packed = (
            found.link_urls,
            found.link_ends,
            found.fingerprints,
            found.host_spans,
            found.anchors,
            found.link_flags,
        )
        assert len(taken) + len(packed) == 12
        text = found.main_text if main_text else found.text
        return Taken(found.link_count, found.title, len(text))

    return work


def without_tree() -> Work:
    """The page pass as a crawl uses it: links, title, main text, metadata."""
    return _pass(True)


def without_main_text() -> Work:
    """The same without main text."""
    return _pass(False)


def with_tree() -> Work:
    """The page pass, and a tree of the page for rules."""
    from nephila_rules.runtime.document import Document

    first = _pass(True)

    def work(body: bytes) -> Taken:
        taken = first(body)
        assert Document(body, URL, "utf-8", "text/html").tree is not None
        return taken

    return work


def whole_page() -> Work:
    """All that the service does with a page: its steps and both messages, over a bus in memory."""
    from nephila.kernel import messages as m
    from nephila.kernel.bus.local import LocalBus
    from nephila.kernel.runtime.clock import ManualClock
    from nephila.kernel.topics import OUTLINKS, PAGES, RECORDS
    from nephila.parser.config import ParserConfig
    from nephila.parser.service import GROUP, build

    bus, got = LocalBus(clock := ManualClock()), []
    parser = build(ParserConfig(), bus, clock, with_judge=False)

    def keep(delivery: Any) -> None:
        got.append(delivery.message)
        delivery.ack()

    for topic in (OUTLINKS, RECORDS):
        bus.subscribe(topic, "bench", keep, credits=100)
    bus.subscribe(PAGES, GROUP, parser._on_page, credits=100)

    def work(body: bytes) -> Taken:
        got.clear()
        bus.publish(
            PAGES, 0, m.Page(job="j", url_key=bytes(16), url=URL, status=200, content_type="text/html", body=body)
        )
        *links, record = got
        return Taken(sum(len(one.flags) for one in links), record.title, len(record.text))

    return work


def one_document() -> Work:
    """`nephila extract`: with a tree, media, author and date."""
    from nephila.parser.single.extract import extract

    def work(body: bytes) -> Taken:
        found = extract(body, URL, "text/html")
        return Taken(len(found["links"]), found["title"], len(found["text"]))

    return work


# ---- rivals, each as its documentation has it


def selectolax() -> Work:
    """A tree, title, resolved links and all text."""
    from urllib.parse import urljoin

    from selectolax.lexbor import LexborHTMLParser

    def work(body: bytes) -> Taken:
        tree = LexborHTMLParser(body)
        title = tree.css_first("title")
        links = {urljoin(URL, node.attributes.get("href") or "") for node in tree.css("a[href]")}
        return Taken(len(links), title.text() if title else "", len(tree.body.text() if tree.body else ""))

    return work


def lxml() -> Work:
    """A tree, title, resolved links and all text."""
    from urllib.parse import urljoin

    from lxml import html

    def work(body: bytes) -> Taken:
        tree = html.fromstring(body)
        links = {urljoin(URL, href) for href in tree.xpath("//a/@href")}
        return Taken(len(links), tree.findtext(".//title") or "", len(tree.text_content()))

    return work


COSTS: dict[str, tuple[Callable[[], Work], str]] = {
    "page pass": (without_tree, "links title main-text meta  <= 0.25"),
    "  of which main text": (without_main_text, "(the difference)            <= 0.10"),
    "page pass and tree": (with_tree, "links title main-text meta  <= 0.60"),
    "parser, whole page": (whole_page, "record and links as they go on"),
    "nephila extract": (one_document, "links title main-text meta media"),
    "selectolax": (selectolax, "links title all-text"),
    "lxml": (lxml, "links title all-text"),
}
"""Row → what makes its work, and what it takes from a page with the bound of the design."""


def page() -> bytes:
    """79 KB like those of the bench web: 103 links, paragraphs, a list, some attributes."""
    links = "".join(
        f'<li class="item n{n}"><a class="l" href="/2026/10/p{n}?q={n}">Link number {n}</a></li>' for n in range(103)
    )
    words = "the quick brown spider spins its golden web between two old trees near the slow river " * 5
    paragraphs = "".join(f'<p class="par">{words}<b>{n}</b> {words[:200]}</p>' for n in range(105))
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>'
        '<meta name="description" content="About spiders"></head><body><nav><ul>'
    )
    return (
        f'{head}{links}</ul></nav><main><h1 class="title">Golden <i>silk</i></h1><time datetime="2026-10-12">12 October'
        f'</time><img src="/a.png" alt="">{paragraphs}</main></body></html>'
    ).encode()


def cost_rows(name: str, body: bytes) -> Iterator[str]:
    """CPU-ms of everything on one page."""
    yield f"-- CPU-ms of a page: {name}, {len(body):,} bytes"
    known: dict[str, float] = {}
    for row, (make, takes) in COSTS.items():
        try:
            work = make()
        except ImportError as error:
            yield f"{row:22} not installed ({error.name})"
            continue
        taken, cost = work(body), least_ms(lambda work=work: work(body))
        known[row] = cost
        shown = known["page pass"] - cost if "of which" in row else cost
        links = f"{taken.links:5} links" if taken.links >= 0 else "    - links"
        yield f"{row:22} {shown:8.3f}  {links}  {taken.text_chars:7} chars  {taken.title[:16]:16}  {takes}"


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="pages besides the one of the bench")
    arguments = parser.parse_args()
    from nephila.native import IMPLEMENTATION

    print(f"native core: {IMPLEMENTATION}")
    bodies = [("of the bench", page()), *((path.name, path.read_bytes()) for path in arguments.pages)]
    for name, body in bodies:
        for line in cost_rows(name, body):
            print(line, flush=True)


if __name__ == "__main__":
    main()
