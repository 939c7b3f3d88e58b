"""Shared by the storage tests: records, a storage on a bus with a manual clock, readers."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nephila.kernel import messages as m
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import EXCHANGES, PAGES, RECEIPTS, RECORDS
from nephila.storage.config import StorageConfig
from nephila.storage.service import Storage, build

JOB = "job-1"


def key(number: int) -> bytes:
    """A url_key."""
    return hashlib.md5(b"%d" % number).digest()


def record(number: int, fetch_no: int = 1, attempt: int = 1, **fields: Any) -> m.Record:
    """A stored page."""
    values: dict[str, Any] = {
        "job": JOB,
        "url_key": key(number),
        "url": f"http://h{number % 3}.test/p/{number}.html",
        "outcome": m.Outcome.STORED,
        "status": 200,
        "depth": 2,
        "content_type": "text/html",
        "size_bytes": 1000 + number,
        "sha256": hashlib.sha256(b"%d" % number).digest(),
        "title": f"Page {number}",
        "text": f"text of page {number}\nfetch {fetch_no}".encode(),
        "lang": "en",
        "fetched_at": 1_800_000_000.25 + number,
        "meta": '{"description":"d"}',
        "etag": f'"{number}"',
    }
    return m.Record(fetch_no=fetch_no, attempt=attempt, **{**values, **fields})


def page(number: int, fetch_no: int = 1, attempt: int = 1, **fields: Any) -> m.Page:
    """The raw page of `record(number)`."""
    body = f"<html><title>Page {number}</title>".encode() + b"x" * 500
    values: dict[str, Any] = {
        "job": JOB,
        "url_key": key(number),
        "url": f"http://h{number % 3}.test/p/{number}.html",
        "host": f"h{number % 3}.test",
        "status": 200,
        "content_type": "text/html",
        "body": body,
        "fetched_at": 1_800_000_000.25 + number,
        "address": "192.0.2.7",
        "request_head": b"GET /p/%d.html HTTP/1.1\r\nHost: h.test\r\n\r\n" % number,
        "response_head": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body),
    }
    return m.Page(fetch_no=fetch_no, attempt=attempt, **{**values, **fields})


class Rig:
    """A storage in a directory, with its receipts and log lines."""

    def __init__(self, directory: Path, **config: Any) -> None:
        self.clock = ManualClock()
        self.bus = LocalBus(self.clock)
        self.directory = directory
        self.receipts: list[tuple[int, str, bytes, int, m.Outcome]] = []
        self.fatal: list[BaseException] = []
        self.storage: Storage = build(
            StorageConfig(directory=directory, **{"fsync": False, **config}), self.bus, self.clock
        )
        self.storage.on_fatal = self.fatal.append
        self.bus.subscribe(RECEIPTS, "scheduler", self._on_receipts, credits=1000)

    def _on_receipts(self, delivery: Any) -> None:
        message = delivery.message
        for receipt in message.receipts:
            self.receipts.append((delivery.partition, message.job, receipt.url_key, receipt.fetch_no, receipt.outcome))
        delivery.ack()

    def send(self, *records: m.Record, partition: int = 0) -> list[Any]:
        """Publish records; returns their receipts from the bus."""
        return [self.bus.publish(RECORDS, partition, item) for item in records]

    def send_page(self, *pages: m.Page) -> list[Any]:
        """Publish raw pages."""
        return [self.bus.publish(PAGES, 0, item) for item in pages]

    def send_exchange(self, *pages: m.Page) -> list[Any]:
        """Publish answers that are no pages."""
        return [self.bus.publish(EXCHANGES, 0, item) for item in pages]


@asynccontextmanager
async def running(directory: Path, **config: Any) -> AsyncIterator[Rig]:
    """A started storage, closed at the end."""
    rig = Rig(directory, **config)
    await rig.storage.start()
    try:
        yield rig
    finally:
        await rig.storage.close()


def rows(directory: Path, table: str = "pages", order: str = "url") -> list[dict[str, Any]]:
    """All rows of a table."""
    connection = sqlite3.connect(directory / "nephila.db")
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}")]
    finally:
        connection.close()


def lines(directory: Path) -> list[dict[str, Any]]:
    """All objects of pages.jsonl; a truncated line is an error."""
    data = (directory / "pages.jsonl").read_bytes()
    assert not data or data.endswith(b"\n"), "torn last line"
    return [json.loads(line) for line in data.splitlines()]
