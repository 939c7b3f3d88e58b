"""The hot stages of a page, one setup each: what it prepares, the call that is timed, and how many units one call does.

A setup imports what it measures, so a stage whose module is not there is absent and the others still run.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import random
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.web.content import Files
from benchmarks.web.plain import generate, page_url
from benchmarks.web.prose import Prose

LINKS = 100


@dataclass
class Work:
    """What is timed: one call does *units* units."""

    call: Callable[[], object]
    units: int


Setup = Callable[[ExitStack], Work]


def document(seed: int = 1, size: int = 80_000) -> bytes:
    """An ordinary page of 80 KB with 100 links."""
    return Prose(seed).page("A title", [page_url(n, 100, 8088) for n in range(LINKS)], size)


def fingerprints(count: int, seed: int = 1) -> bytes:
    """*count* random fingerprints in one buffer."""
    return random.Random(seed).randbytes(16 * count)


def page_pass(stack: ExitStack) -> Work:
    """Bytes to title, text, links, fingerprints: the core that this installation uses."""
    from nephila.native import page_pass as run

    body, url = document(), page_url(0, 100, 8088)
    return Work(lambda: run(body, url, "utf-8", main_text=False).fingerprints, 1)


def page_pass_fallback(stack: ExitStack) -> Work:
    """The same by the fallback."""
    from nephila.native.fallback import page_pass as run

    body, url = document(), page_url(0, 100, 8088)
    return Work(lambda: run(body, url, "utf-8", main_text=False).fingerprints, 1)


def sniff(stack: ExitStack) -> Work:
    """Which encoding a page without a header has."""
    from nephila.native import sniff_encoding

    body = document()
    return Work(lambda: sniff_encoding(body, None), 1)


def whole_pass(stack: ExitStack) -> Work:
    """The page pass with its main text."""
    from nephila.native import page_pass as run

    body, url = document(), page_url(0, 100, 8088)
    return Work(lambda: run(body, url, "utf-8").main_text, 1)


def url_key(stack: ExitStack) -> Work:
    """One URL parsed, canonicalised and hashed outside the page pass."""
    from nephila.native import parse_url

    urls = [f"http://h{n}.bench.test:8088/p/{n}.html?b=2&a={n}&utm_source=x" for n in range(1000)]

    def call() -> None:
        for url in urls:
            _ = parse_url(url).fingerprint

    return Work(call, len(urls))


def seen_hit(stack: ExitStack) -> Work:
    """The links of a page looked up in a set of 200,000 that has them all; per link."""
    from nephila.scheduler.frontier.seen import new_seen

    seen, known = new_seen("", 0), fingerprints(200_000)
    seen.add(known)
    page = known[: 16 * LINKS]
    return Work(lambda: seen.missing(page), LINKS)


def seen_insert(stack: ExitStack) -> Work:
    """The links of new pages looked up and added; per link."""
    from nephila.scheduler.frontier.seen import new_seen

    pages = [fingerprints(LINKS, seed) for seed in range(200)]

    def call() -> None:
        seen = new_seen("", 0)
        for page in pages:
            seen.missing(page)
            seen.add(page)

    return Work(call, LINKS * len(pages))


def queue(stack: ExitStack) -> Work:
    """A URL packed, pushed, popped and unpacked; per URL."""
    from nephila.native import HostStore
    from nephila.scheduler.frontier.queue_entry import pack, unpack

    keys = fingerprints(1000)
    entries = [(keys[16 * n : 16 * n + 16], page_url(n, 100, 8088).encode()) for n in range(1000)]

    def call() -> None:
        store = HostStore()
        host = store.host("h1.bench.test:8088")
        for key, url in entries:
            store.push(host, 1, 4, pack(key, 3, url))
        while packed := store.pop(host, 1):
            unpack(packed)

    return Work(call, len(entries))


def workbench(stack: ExitStack) -> Work:
    """A host put into the heap of 1,000 and taken out; per host."""
    from nephila.native import HostStore

    store = HostStore()
    for n in range(1000):
        store.schedule(store.host(f"h{n}.test"), float(n))
    clock = [1000.0]

    def call() -> None:
        for _ in range(1000):
            host = store.take_ready(clock[0])
            clock[0] += 1
            store.schedule(host, clock[0])

    return Work(call, 1000)


def url_shape(stack: ExitStack) -> Work:
    """Whether the shape of a new URL gives a trap away; per URL of an ordinary web."""
    from nephila.scheduler.traps.url_shape import shape

    urls = [page_url(n, 100, 8088) for n in range(500)]
    urls += [f"https://www.example.org/news/2026/{n % 12 + 1:02}/title-of-article-{n}.html" for n in range(500)]

    def call() -> None:
        for url in urls:
            shape(url, 1.79e9)

    return Work(call, len(urls))


def trap_yield(stack: ExitStack) -> Work:
    """What a fetched page with 50 new links brought its places; per page."""
    from nephila.scheduler.traps.novelty import NoveltyTracker

    judge = NoveltyTracker("job", "www.example.org")
    urls = [f"http://www.example.org/news/{n % 30}/article-{n}.html" for n in range(1000)]
    texts = fingerprints(1000)

    def call() -> None:
        for n, url in enumerate(urls):
            judge.linked(url, urls[:50])
            judge.fetched(url, texts[16 * n : 16 * n + 8], 10 * n, 1.79e9)

    return Work(call, len(urls))


def relevance(stack: ExitStack) -> Work:
    """Priorities of the 100 links of a page for three keywords; per page."""
    from nephila.kernel.messages.parse import Outlinks
    from nephila.native import page_pass as run
    from nephila.parser.links.relevance import Relevance

    page = run(document(), page_url(0, 100, 8088), "utf-8")
    links = Outlinks(
        fingerprints=page.fingerprints,
        urls=page.link_urls,
        url_ends=page.link_ends,
        anchors=page.anchors,
        anchor_ends=page.anchor_ends,
    )
    title, text, judge = page.title, page.text, Relevance(["solar", "wind power", "photovoltaic"])
    return Work(lambda: judge.priorities(title, text, links), 1)


def fair_share(stack: ExitStack) -> Work:
    """Which of ten jobs is next; per fetch."""
    from nephila.scheduler.frontier.fair_share import FairShare

    share, jobs = FairShare[int](), set(range(10))
    for job in jobs:
        share.add(job, 1 + job % 3)

    def call() -> None:
        for _ in range(1000):
            share.next(jobs)

    return Work(call, 1000)


def log_append(stack: ExitStack) -> Work:
    """A commit of one page (100 new URLs) encoded and appended, without fsync; per commit."""
    from nephila.kernel.messages.frontier import FrontierCommit, QueuedUrl
    from nephila.scheduler.durability.commit_log import CommitLog

    log = CommitLog(Path(stack.enter_context(tempfile.TemporaryDirectory())))
    log.open()
    stack.callback(log.close)
    keys = fingerprints(LINKS)
    host = "h1.bench.test:8088"
    urls = [QueuedUrl("job", keys[16 * n : 16 * n + 16], page_url(n, 100, 8088), host, 3, 0, 1) for n in range(LINKS)]
    return Work(lambda: log.append([FrontierCommit(1, 1, 1, queued=urls)]), 1)


def sqlite_batch(stack: ExitStack) -> Work:
    """Records to durable rows, 256 at a time, without fsync; per row of 15 KB of text."""
    from nephila.kernel.messages.parse import Outcome, Record
    from nephila.storage.config import StorageConfig
    from nephila.storage.writer import Writer

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    writer = Writer(StorageConfig(directory=folder / "o", fsync=False))
    writer.open()
    stack.callback(writer.close)
    text = Prose(1).text(400).encode()[:15_000]
    digest = hashlib.sha256(text).digest()
    source = random.Random(2)

    def call() -> None:
        records = [
            Record(
                job="job",
                url_key=source.randbytes(16),
                url=page_url(n, 100, 8088),
                fetch_no=1,
                attempt=1,
                outcome=Outcome.STORED,
                status=200,
                size_bytes=80_000,
                sha256=digest,
                title="A title",
                text=text,
                fetched_at=1.7e9,
            )
            for n in range(256)
        ]
        writer.commit(records, [None] * len(records), [])
        writer.after_commit()

    return Work(call, 256)


def gunzip(stack: ExitStack) -> Work:
    """A page of 80 KB decoded from gzip; per page."""
    from nephila.downloader.http.response.decode import codings_of, pump_all

    wire = gzip.compress(document(), 6, mtime=0)

    def call() -> bytes:
        codings = codings_of("gzip")
        return b"".join(pump_all(codings, wire))

    return Work(call, 1)


def lean_fetcher(stack: ExitStack) -> Work:
    """A page of 80 KB fetched over a kept connection; per fetch, our server's CPU included (same process)."""
    from nephila.downloader.config import DownloaderConfig
    from nephila.downloader.http.contract import HttpRequest, HttpResponse
    from nephila.downloader.http.lean import LeanFetcher
    from nephila.downloader.http.route import direct_route
    from nephila.downloader.http.target import Target
    from nephila.kernel.runtime.clock import SystemClock

    from benchmarks.web.serve import Server

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    generate(folder, pages=20, hosts=1, port=8088, seed=1, size=80_000, links=LINKS)
    loop = _loop(stack)

    async def start() -> tuple[Server, LeanFetcher]:
        server = await Server(Files(folder), 0, None).__aenter__()
        return server, LeanFetcher(DownloaderConfig(allow_private=True), SystemClock())

    server, fetcher = loop.run_until_complete(start())
    stack.callback(lambda: loop.run_until_complete(server.__aexit__()))
    stack.callback(lambda: loop.run_until_complete(fetcher.close()))
    targets = [Target(f"http://h0.bench.test:{server.port}/p/{n}.html") for n in range(20)]
    http_requests = [HttpRequest(target, direct_route(target, ("127.0.0.1",), server.port)) for target in targets]

    async def fetch_all() -> None:
        for http_request in http_requests:
            done: asyncio.Future[HttpResponse] = loop.create_future()
            fetcher.fetch(http_request, done.set_result)
            answer = await done
            if answer.status != 200:
                raise RuntimeError(f"{answer.status} {answer.reason} {answer.detail}")

    return Work(lambda: loop.run_until_complete(fetch_all()), len(http_requests))


def _loop(stack: ExitStack) -> asyncio.AbstractEventLoop:
    import uvloop

    loop = uvloop.new_event_loop()
    stack.callback(loop.close)
    return loop


STAGES: dict[str, Setup] = {
    "page pass, 80 KB, 100 links": page_pass,
    "page pass by the fallback": page_pass_fallback,
    "encoding sniffed": sniff,
    "page pass with main text": whole_pass,
    "url key": url_key,
    "seen: hit, per link": seen_hit,
    "seen: insert, per link": seen_insert,
    "queue: push and pop, per URL": queue,
    "workbench: take and put, per host": workbench,
    "shape of a URL": url_shape,
    "traps: yield, per page": trap_yield,
    "relevance, per page of 100 links": relevance,
    "fair share, per fetch": fair_share,
    "log append, commit of 100 URLs": log_append,
    "sqlite batch, per row": sqlite_batch,
    "gunzip, per page": gunzip,
    "lean fetcher, per page": lean_fetcher,
}
