"""What documents cost beside pages: child processes and their calls, PDFs, feeds beside feedparser, hostile patterns.

CPU time of this process, of its children where stated; each figure is the least of some rounds. Wall time of calls
is that of a quiet moment, if there was one.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nephila.native import PassOptions, page_pass, sniff_encoding
from nephila.parser.config import ParserConfig
from nephila.parser.documents.pdf_task import PDF, pdf_payload
from nephila.parser.links.link_list import run_to_end
from nephila.parser.lists.feeds import read_feed
from nephila.parser.page.charset import encoding_of
from nephila.parser.page.oversize import PAGE, payload_of
from nephila.parser.sandbox import BlockingSandbox

from benchmarks.report import save, versions

ROUNDS = 3
WORDS = "The quick brown fox jumps over the lazy dog and then it sits down for a while. "
HOSTILE = (
    b"<div>", b"<b>", b"<a href=x>", b"<p><b><i>", b"<table><tr><td>", b"<table>x", b"<p a=1 b=2 c=3 d=4>", b"&amp;",
    b"&#x41;", b"<", b"<a href='", b"<!--", b"<!-- -->", b"<svg>", b"<math><mi>", b"<select><option>", b"<template>",
    b"<form>", b"</p>", b"</div></b>", b"<title>", b"<script>", b"<script></script>", b"\xe4\xfc ", b"\0",
    b"<meta name=description content=x>", b"<base href=/x>", b"<img src=x srcset='a 1x, b 2x'>", b"<frameset>",
    b"<ul><li>", b"<font size=1>", b"<a><b></a></b>", b"<nobr>", b"<applet>", b"<button>", b"<h1>",
)  # fmt: skip


def least_ms(work: Callable[..., Any], seconds: Callable[[], float] = time.process_time) -> float:
    """Milliseconds a call, the least of ROUNDS."""
    found = []
    for _ in range(ROUNDS):
        before = seconds()
        work()
        found.append(1000 * (seconds() - before))
    return round(min(found), 3)


def pdf(pages: int) -> bytes:
    """A PDF of so many pages of forty lines."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(pages))),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    lines = "".join(f"1 0 0 1 72 {760 - 18 * n} Tm ({WORDS}) Tj " for n in range(40))
    content = f"BT /F1 9 Tf {lines} ET".encode()
    for number in range(pages):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % (5 + 2 * number)
        )
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%sendobj\n" % (number, one)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, table)
    return bytes(out)


def calls() -> dict[str, float]:
    """Start of a child, and a call with little to do."""
    body = b"<p>" + WORDS.encode() * 1_000
    payload = payload_of(body, "http://a.test/", "utf-8", PassOptions(max_links=10, max_text_bytes=1_000))

    def start() -> None:
        with BlockingSandbox() as box:
            box.call(PAGE, payload)

    with BlockingSandbox() as box:
        box.call(PAGE, payload)
        many = range(300)
        return {
            "child_start_wall_ms": least_ms(start, time.perf_counter),
            "call_80kb_cpu_ms": round(least_ms(lambda: [box.call(PAGE, payload) for _ in many]) / len(many), 4),
            "call_80kb_wall_ms": round(
                least_ms(lambda: [box.call(PAGE, payload) for _ in many], time.perf_counter) / len(many), 4
            ),
            "page_pass_80kb_cpu_ms": round(
                least_ms(lambda: [page_pass(body, "http://a.test/", "utf-8", PassOptions(max_links=10)) for _ in many])
                / len(many),
                4,
            ),
        }


def pdfs() -> dict[str, float]:
    """Wall time of PDFs in a child that is there."""
    found = {}
    with BlockingSandbox() as box:
        for pages in (1, 10, 100):
            payload = pdf_payload(pdf(pages), 4_000_000, 10_000)
            box.call(PDF, payload)
            found[f"pdf_{pages}_pages_wall_ms"] = least_ms(lambda p=payload: box.call(PDF, p), time.perf_counter)
    return found


def feeds() -> dict[str, float]:
    """1,000 items of RSS, by our reader and by feedparser."""
    import feedparser

    item = "<item><title>News {0}</title><link>http://a.test/{0}</link><pubDate>Thu, 02 May 2024 10:11:12 GMT</pubDate>"
    items = "".join(f"{item.format(n)}<description>{WORDS}</description></item>" for n in range(1_000))
    body = f"<rss><channel><title>F</title>{items}</channel></rss>".encode()
    assert len(run_to_end(read_feed((body,), "utf-8", "http://a.test/", 10_000, 1.9e9)).entries) == 1_000
    return {
        "feed_1000_items_cpu_ms": least_ms(
            lambda: run_to_end(read_feed((body,), "utf-8", "http://a.test/", 10_000, 1.9e9))
        ),
        "feedparser_1000_items_cpu_ms": least_ms(lambda: feedparser.parse(body)),
    }


def hostile(megabytes: int = 2) -> dict[str, float | str]:
    """The dearest of the patterns, a mebibyte."""
    config, worst, pattern = ParserConfig(), 0.0, b""
    for one in HOSTILE:
        body = one * ((megabytes << 20) // len(one))

        def read(body: bytes = body) -> None:
            encoding = encoding_of(body, "", sniff_encoding)
            found = page_pass(body, "http://a.test/", encoding, PassOptions(max_links=config.max_links))
            assert found.link_count <= config.max_links

        cost = least_ms(read) / megabytes
        if cost > worst:
            worst, pattern = cost, one
    return {"dearest_pattern_cpu_ms_a_mib": round(worst, 2), "dearest_pattern": ascii(pattern)[2:-1]}


def main() -> None:
    """Measure, print a line each, write the raw result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    out = parser.parse_args().out
    results: dict[str, Any] = {}
    for part in (calls, pdfs, feeds, hostile):
        results |= part()
    for name, value in results.items():
        print(f"{name:32} {value}")
    figures = {"results": results, "load": os.getloadavg(), "versions": versions("pypdfium2", "feedparser")}
    print(save("documents", figures, out))


if __name__ == "__main__":
    main()
