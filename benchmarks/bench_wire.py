"""Bytes that one page leaves in the topics of a broker and in PostgreSQL.

Pages of the plain web (80 KB, 100 links) pass the real parser; each message is measured as the frame that is sent. The
rows go to a server of the bench's own. The frontier log per new URL is a figure of bench_frontier.

    python -m benchmarks.bench_wire [--pages 200] [--save]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.kafka.wire import frame_of, seal
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import OUTCOMES, OUTLINKS, PAGES, RECEIPTS, RECORDS, REQUESTS, Topic
from nephila.native import parse_url
from nephila.parser.config import ParserConfig
from nephila.parser.service import build
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer

from benchmarks.report import save
from benchmarks.web.plain import generate
from tools.postgres import Server


def database_bytes(records: list[m.Record], folder: Path) -> int:
    """Growth of a PostgreSQL database, indices and TOAST included, by these rows."""
    import psycopg

    server = Server(settings=("autovacuum=on",))
    try:
        server.start()
        writer = Writer(StorageConfig(directory=folder / "rows", store=server.dsn(), formats=()))
        writer.open()
        with psycopg.connect(server.dsn()) as connection:

            def size() -> int:
                row = connection.execute("select pg_database_size(current_database())").fetchone()
                assert row is not None
                return int(row[0])

            before = size()
            for first in range(0, len(records), 256):
                batch = records[first : first + 256]
                writer.commit(batch, [None] * len(batch), [])
            grown = size() - before
        writer.close()
        return grown
    finally:
        server.stop()


async def measure(folder: Path, files: list[Path]) -> dict[str, float]:
    """Mean bytes per page, by topic."""
    bus, sizes = LocalBus(SystemClock()), Counter[str]()

    def count(topic: Topic, message: Any) -> None:
        sizes[topic.name] += len(seal([frame_of(topic.message, message)]))

    def counted(topic: Topic) -> None:
        def take(delivery: Delivery) -> None:
            count(topic, delivery.message)
            delivery.ack()

        bus.subscribe(topic, "bench", take, credits=10)

    for topic in (OUTLINKS, RECORDS):
        counted(topic)
    records: list[m.Record] = []

    def keep(delivery: Delivery) -> None:
        records.append(delivery.message)
        delivery.ack()

    bus.subscribe(RECORDS, "rows", keep, credits=10)
    parser = build(ParserConfig(), bus, SystemClock(), with_judge=False)
    await parser.start()
    for path in files:
        url = f"http://{path.parts[-3]}/p/{path.name}"
        parts, body = parse_url(url), path.read_bytes()
        key, host = parts.fingerprint, parts.host_key
        page = m.Page("job", key, url, host, fetch_no=1, attempt=1, status=200, content_type="text/html", body=body)
        sizes["body"] += len(body)
        count(REQUESTS, m.FetchRequest("job", key, url, host, fetch_no=1, attempt=1, start_by=1.5, lease_until=1.5))
        count(OUTCOMES, m.FetchOutcome("job", key, host, fetch_no=1, attempt=1, status=200, started_at=1.5))
        count(PAGES, page)
        count(RECEIPTS, m.Receipts("job", [m.Receipt(key, 1, m.Outcome.STORED, b"12345678")]))
        await bus.publish(PAGES, 0, page)
    await parser.close()
    sizes["database"] = database_bytes(records, folder)
    return {name: round(total / len(files), 1) for name, total in sizes.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        web = Path(folder)
        generate(web, pages=options.pages, hosts=20, port=80, seed=7, size=80_000, links=100)
        found = asyncio.run(measure(web, sorted(web.rglob("*.html"))))
    for name, size in found.items():
        print(f"{name:10} {size:10,.0f} bytes per page")
    if options.save:
        save("wire", {"pages": options.pages, "bytes_per_page": found})


if __name__ == "__main__":
    main()
