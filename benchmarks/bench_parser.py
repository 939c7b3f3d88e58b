"""What parsing a page costs: one table, rivals beside.

    python -m benchmarks.bench_parser [--readability FILE] [PAGE...]

Cost: CPU-ms of a page of 79 KB (and of the files named), the least of some rounds: disturbances only make a round
longer. Each line names what it takes from the page, with the number of links and characters. Then titles on the pages
of Readability's tests, and what rules cost (`rule_costs`). Libraries and data that are absent are named. Quality of
main text: `bench_maintext`.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rule_costs import page, rules

ROUNDS = 9
ROUND_S = 0.05
DATA = Path("../shared/data")
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
    from nephila.parser.rules.document import Document

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


def turbohtml() -> Work:
    """A tree, links, and its record of the article: text, title, byline, date, language."""
    from urllib.parse import urljoin

    from turbohtml import parse

    def work(body: bytes) -> Taken:
        tree = parse(body)
        article = tree.article()
        links = {urljoin(URL, str(node.attrs.get("href", ""))) for node in tree.select("a[href]")}
        return Taken(len(links), article.title or "", len(article.text))

    return work


COSTS: dict[str, tuple[Callable[[], Work], str]] = {
    "page pass": (without_tree, "links title main-text meta  <= 0.25"),
    "  of which main text": (without_main_text, "(the difference)            <= 0.10"),
    "page pass and tree": (with_tree, "links title main-text meta  <= 0.60"),
    "parser, whole page": (whole_page, "record and links as they go on"),
    "nephila extract": (one_document, "links title main-text meta media"),
    "selectolax": (selectolax, "links title all-text"),
    "lxml": (lxml, "links title all-text"),
    "turbohtml": (turbohtml, "links title main-text meta"),
}
"""Row → what makes its work, and what it takes from a page with the bound of the design."""


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


def title_row(archive: Path) -> str:
    """How many titles of readability's test pages are as its metadata has them."""
    if not archive.is_file():
        return f"-- titles: {archive} is not there"
    from nephila.parser.single.extract import extract

    right = count = 0
    with tarfile.open(archive) as tar:
        names = [name for name in tar.getnames() if name.endswith("/expected-metadata.json")]
        for name in names:
            result = json.loads(_read(tar, name)).get("title")
            if result:
                found = extract(
                    _read(tar, name.replace("expected-metadata.json", "source.html")), "http://fakehost/", "text/html"
                )
                count += 1
                right += " ".join(str(found["title"]).split()) == " ".join(result.split())
    return f"-- titles as readability has them: {right} of {count} ({right / max(count, 1):.1%}; >= 95 %)"


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    return file.read() if file is not None else b""


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, help="pages besides the one of the bench")
    parser.add_argument(
        "--readability", type=Path, default=DATA / "readability-test-pages" / "test-pages.tar.xz", metavar="FILE"
    )
    arguments = parser.parse_args()
    from nephila.native import IMPLEMENTATION

    print(f"native core: {IMPLEMENTATION}")
    bodies = [("of the bench", page()), *((path.name, path.read_bytes()) for path in arguments.pages)]
    for name, body in bodies:
        for line in cost_rows(name, body):
            print(line, flush=True)
    print(title_row(arguments.readability), flush=True)
    print("-- rules (CPU)", flush=True)
    rules(bodies)


if __name__ == "__main__":
    main()
