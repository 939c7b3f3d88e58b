"""A page pass that says what a test wants, and a bus with everything the parser publishes written down."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field, replace
from typing import Any

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import DEAD, OUTLINKS, PAGES, RECORDS
from nephila.native import PassOptions
from nephila.parser.config import ParserConfig
from nephila.parser.page.text import text_hash
from nephila.parser.sandbox import Sandbox
from nephila.parser.service import Parser


@dataclass
class FakePass:
    """The attributes of a page pass, all settable."""

    title: str = ""
    lang: str = ""
    base: str = "http://a.test/"
    canonical: str = ""
    robots: str = ""
    description: str = ""
    meta: list[tuple[str, str]] = field(default_factory=list)
    refresh: str = ""
    text: bytes = b""
    text_lines: bytes = b""
    main_lines: bytes = b""
    main_text: bytes = b""
    comments: bytes = b""
    structure: bytes = b""
    link_count: int = 0
    link_urls: bytes = b""
    link_ends: bytes = b""
    fingerprints: bytes = b""
    host_spans: bytes = b""
    anchors: bytes = b""
    anchor_ends: bytes = b""
    link_flags: bytes = b""
    depth: int = 5
    links_left_out: int = 0

    @property
    def text_hash(self) -> bytes:
        """As the native core makes it."""
        return text_hash(self.main_text or self.text)


def with_links(*urls: str, flags: bytes = b"", **more: Any) -> FakePass:
    """A page pass that found these links, each called by its URL's last letter."""
    packed = b"".join(url.encode() for url in urls)
    ends = [sum(len(url) for url in urls[: n + 1]) for n in range(len(urls))]
    starts = [0, *ends[:-1]]
    spans = [at for start, url in zip(starts, urls, strict=True) for at in (start + 7, start + url.index("/", 7))]
    return FakePass(
        link_count=len(urls),
        link_urls=packed,
        link_ends=struct.pack(f"<{len(urls)}I", *ends),
        fingerprints=b"".join(hashlib.md5(url.encode(), usedforsecurity=False).digest() for url in urls),
        host_spans=struct.pack(f"<{2 * len(urls)}I", *spans),
        anchors=b"".join(url[-1:].encode() for url in urls),
        anchor_ends=struct.pack(f"<{len(urls)}I", *range(1, len(urls) + 1)),
        link_flags=flags or bytes(len(urls)),
        **more,
    )


ROOMS: list[Room] = []
"""Rooms of the present test."""


class Room:
    """A parser on a local bus; `log` holds what it published, in order, `dead` the dead letters."""

    def __init__(self, found: Any = None, sniffed: str = "utf-8", **settings: Any) -> None:
        """`found` is a FakePass to be returned, an exception to be raised, or a function (body, url, encoding)."""
        self.found = FakePass() if found is None else found
        self.sniffed = sniffed
        self.calls: list[tuple[bytes, str, str, int, int]] = []
        self.clock = ManualClock()
        self.bus = LocalBus(self.clock)
        self.log: list[m.Outlinks | m.Record] = []
        self.dead: list[m.DeadLetter] = []
        self.partitions: list[int] = []
        self.held: list[Delivery] = []
        self.hold = False
        for topic in (OUTLINKS, RECORDS):
            self.bus.subscribe(topic, "reader", self._read, credits=1_000)
        self.bus.subscribe(DEAD, "reader", self._read_dead, credits=1_000)
        self.sandbox = Sandbox()
        ROOMS.append(self)
        self.parser = Parser(ParserConfig(**settings), self.bus, self.clock, self._page_pass, self._sniff, self.sandbox)
        # By real CPU time a garbage collection or a busy host would make any rule slow, and send it to the child.
        self.parser.rules.cpu_s = self.clock.monotonic

    async def start(self, *jobs: m.CrawlJob) -> Room:
        """Start the parser and tell it about `jobs`."""
        from nephila.kernel.topics import JOBS

        await self.parser.start()
        for job in jobs:
            self.bus.publish(JOBS, 0, job)
        return self

    def send(self, body: bytes = b"<p>", partition: int = 3, **fields: Any) -> list[m.Outlinks | m.Record]:
        """Deliver one page; returns what came out because of it."""
        before = len(self.log)
        values = {
            "job": "j",
            "url_key": bytes(range(16)),
            "url": "http://a.test/",
            "status": 200,
            "content_type": "text/html",
            "fetch_no": 1,
            "attempt": 1,
            **fields,
        }
        self.bus.publish(PAGES, partition, m.Page(body=body, **values))
        return self.log[before:]

    def whole(self, body: bytes, **fields: Any) -> list[m.Outlinks | m.Record]:
        """The same with what comes in later turns."""
        before = len(self.log)
        self.send(body, **fields)
        self.clock.run_due()
        return self.log[before:]

    def record(self, body: bytes = b"<p>", **fields: Any) -> m.Record:
        """The record of one page."""
        record = self.whole(body, **fields)[-1]
        assert isinstance(record, m.Record)
        return record

    def _read(self, delivery: Delivery) -> None:
        self.log.append(delivery.message)
        self.partitions.append(delivery.partition)
        if self.hold:
            self.held.append(delivery)
        else:
            delivery.ack()

    def _read_dead(self, delivery: Delivery) -> None:
        self.dead.append(delivery.message)
        delivery.ack()

    def _sniff(self, body: bytes, charset: str | None) -> str:
        return self.sniffed

    def _page_pass(
        self,
        body: bytes,
        url: str,
        encoding: str,
        options: PassOptions,
    ) -> Any:
        self.calls.append((body, url, encoding, options.max_links, options.max_text_bytes))
        if isinstance(self.found, BaseException):
            raise self.found
        found = self.found(body, url, encoding) if callable(self.found) else self.found
        if isinstance(found, FakePass) and not options.main_text:
            return replace(found, main_text=b"", main_lines=b"", comments=b"", structure=b"")
        return found
