"""CPU time of the page pass, beside what else could do the work.

    python benchmarks/bench_page_pass.py DIRECTORY [--pages 200] [--rounds 9]

DIRECTORY holds the bench web (every *.html below it). Microseconds of CPU per page: of each page the fastest of N
rounds, then the mean over the pages. The seen test has a bench of its own: bench_seen.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

URL = "http://h0.bench.test:8088/p/0.html"
Run = Callable[[bytes], Any]


def page_pass(module: str, main_text: bool = False) -> Run:
    """One implementation of the page pass."""
    core = importlib.import_module(module)
    return lambda body: core.page_pass(body, URL, "utf-8", main_text=main_text)


def selectolax() -> Run:
    """A lexbor tree, its title, text and raw hrefs; nothing resolved or hashed."""
    from selectolax.lexbor import LexborHTMLParser

    def run(body: bytes) -> Any:
        tree = LexborHTMLParser(body)
        title = tree.css_first("title")
        links = [node.attributes["href"] for node in tree.css("a[href]")]
        return title and title.text(), links, tree.body and tree.body.text(separator=" ")

    return run


def lxml() -> Run:
    """An lxml tree, its title, text and raw hrefs; nothing resolved or hashed."""
    from lxml import html

    def run(body: bytes) -> Any:
        tree = html.fromstring(body)
        return tree.findtext(".//title"), tree.xpath("//a/@href"), tree.text_content()

    return run


RIVALS: dict[str, Callable[[], Run]] = {
    "native page pass": lambda: page_pass("nephila.native._core"),
    "  with main text": lambda: page_pass("nephila.native._core", True),
    "fallback": lambda: page_pass("nephila.native.fallback"),
    "selectolax tree + links": selectolax,
    "lxml tree + links": lxml,
}


def pages_of(directory: Path, count: int) -> list[bytes]:
    """The same pages every time, spread over the web."""
    paths = sorted(directory.rglob("*.html"))
    if not paths:
        sys.exit(f"no *.html below {directory}")
    random.Random(1).shuffle(paths)
    return [path.read_bytes() for path in paths[:count]]


def cost(run: Run, pages: list[bytes], rounds: int) -> float:
    """Mean over the pages of the fastest round, in microseconds of CPU."""
    best = [float("inf")] * len(pages)
    for _ in range(rounds):
        for index, body in enumerate(pages):
            start = time.process_time_ns()
            run(body)
            best[index] = min(best[index], time.process_time_ns() - start)
    return sum(best) / len(best) / 1000


def bench_pages(pages: list[bytes], rounds: int) -> None:
    """Every rival on the same pages; one that is not installed is left out."""
    size = sum(map(len, pages)) / len(pages)
    print(f"{len(pages)} pages, mean {size / 1000:.1f} kB; CPU us per page, fastest of {rounds}")
    first = None
    for name, make in RIVALS.items():
        try:
            run = make()
        except ImportError:
            print(f"  {name:26} not installed")
            continue
        found = cost(run, pages, rounds if first is None else max(rounds // 3, 1))
        first = first or found
        print(f"  {name:26} {found:9.1f}  {found / first:6.1f} x  {size / found:7.0f} MB/s")


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    bench_pages(pages_of(arguments.directory, arguments.pages), arguments.rounds)


if __name__ == "__main__":
    main()
