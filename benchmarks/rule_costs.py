"""What rules cost: fields on top of a tree, in the child process, and the choice of a rule among thousands.

CPU time; each figure is the least of some rounds, since only what disturbs makes one larger.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable

from nephila.parser.rules.document import Document
from nephila.parser.rules.extract import extract
from nephila.parser.rules.load import RuleDocument, load
from nephila.parser.rules.match import RuleSet
from nephila.rulekit.run_rule import RuleRunner
from nephila.rulekit.stored_pages import StoredPage

from tools.system import cpu_s

ROUNDS = 5
URL = "https://www.example.org/2026/10/page"
HEAD = """apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {name: bench}
spec:
  match: {url: '^https://'}
  fields:
"""
CSS = """
    title: {css: "h1"}
    heading: {css: ".page-title, .entry-title"}
    first: {css: "p"}
    links: {css: "li a[href]", attr: href}
    image: {css: "img[src]", attr: src, type: url}
    date: {css: "time[datetime]", attr: datetime, type: date}
    about: {meta: description}
    body: {css: "main p", all: true, join: " "}
"""
XPATH = """
    title: {xpath: "//h1"}
    heading: {xpath: "//*[contains(@class, 'title')]"}
    first: {xpath: "//p"}
    links: {xpath: "//li/a/@href"}
    image: {xpath: "//img/@src", type: url}
    date: {xpath: "//time/@datetime", type: date}
    about: {xpath: "//meta[@name='description']/@content"}
    body: {xpath: "//main//p", all: true, join: " "}
"""


def rule(fields: str) -> RuleDocument:
    """A rule with these fields."""
    return load((HEAD + fields.strip("\n") + "\n").encode(), "bench")[0]


Seconds = Callable[[], float]


def least_us(work: Callable[[], object], times: int, seconds: Seconds = time.process_time) -> float:
    """Microseconds of CPU a call."""
    return min(_round_us(work, times, seconds) for _ in range(ROUNDS))


def _round_us(work: Callable[[], object], times: int, seconds: Seconds) -> float:
    before = seconds()
    for _ in range(times):
        work()
    return (seconds() - before) / times * 1e6


def in_children(pids: list[int]) -> Seconds:
    """CPU of this process and of some others, as the kernel counts it in ticks."""
    return lambda: time.process_time() + sum(map(cpu_s, pids))


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


def fields(body: bytes, name: str) -> None:
    """A tree, and what 8 fields add to it."""
    nodes = len(Document(body, URL).tree.css("*"))
    print(f"page {name}: {len(body):,} bytes, {nodes:,} elements")

    def tree() -> Document:
        document = Document(body, URL, "utf-8", "text/html")
        assert document.tree is not None
        return document

    css, xpath = rule(CSS), rule(XPATH)
    bare = least_us(tree, 200)
    with_css = least_us(lambda: extract(css.rule, tree()), 200)
    print(f"  tree {bare:6.0f} us; rule of 8 CSS fields {with_css - bare:6.0f} us on top")

    def etree() -> Document:
        document = Document(body, URL, "utf-8", "text/html")
        assert document.etree is not None
        return document

    inline = least_us(lambda: extract(xpath.rule, etree()), 50)
    stored = StoredPage(URL, "text/html", "utf-8", body, "bench")
    with RuleRunner() as runner:
        found = runner.run(xpath, stored)
        assert found.items == extract(xpath.rule, etree()).items, found.problems
        whole = least_us(lambda: runner.run(xpath, stored), 200, in_children(runner.pids))
    print(f"  rule of 8 XPath fields {inline:6.0f} us with its tree; {whole:6.0f} us by way of the child, all in")


def matching(count: int) -> None:
    """One URL among many rules."""
    documents = [
        load(
            (
                f"apiVersion: nephila.dev/v1\nkind: ParseRule\nmetadata: {{name: r{n}}}\n"
                f"spec: {{match: {{url: '^https://(www\\.)?site{n}\\.example/\\d{{4}}/.+'}}, fields: {{a: h1}}}}\n"
            ).encode(),
            "bench",
        )[0].rule
        for n in range(count)
    ]
    began = time.process_time()
    rules = RuleSet(documents)
    made = time.process_time() - began
    urls = [f"https://www.site{(n * 7919) % count}.example/2026/some-article-{n}" for n in range(2000)]
    misses = [f"https://elsewhere{n}.example/2026/x" for n in range(2000)]
    cold = _round_us(lambda: [list(rules.for_url(url)) for url in urls], 1, time.process_time) / len(urls)
    hit = least_us(lambda: [list(rules.for_url(url)) for url in urls], 1) / len(urls)
    miss = least_us(lambda: [list(rules.for_url(url)) for url in misses], 1) / len(misses)
    assert all(len(list(rules.for_url(url))) == 1 for url in urls)
    print(
        f"{count:,} rules: made in {made:.2f} s; a URL {hit:.1f} us (first time {cold:.1f}), one without a rule"
        f" {miss:.1f} us"
    )


def rules(bodies: Iterable[tuple[str, bytes]]) -> None:
    """Print the cost of fields on each page, and of the choice among 10 and 5,000 rules."""
    for name, body in bodies:
        fields(body, name)
    for count in (10, 5_000):
        matching(count)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MiB")
