"""CPU of the Kafka bus per message: published, then read and acked, over a real broker on this machine.

The messages are what one page of 80 KB with 100 links makes on its way: request, outcome, page, outlinks, record and a
receipt. Each kind is published as services do, spread over 64 partitions, and read by a group of its own; the broker's
CPU is another process and printed beside.

    python -m benchmarks.bench_bus [--pages 3000]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nephila.kernel import messages as m
from nephila.kernel.bus.kafka.admin import topics as admin
from nephila.kernel.bus.kafka.bus import KafkaBus
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import OUTCOMES, OUTLINKS, PAGES, RECEIPTS, RECORDS, REQUESTS, Topic

from benchmarks.report import save, versions
from tools.kafka_broker import Broker

PARTITIONS = 64
IN_FLIGHT = 500
_words = random.Random(1)
WORDS = [_words.randbytes(_words.randint(1, 5)).hex() for _ in range(3000)]
WEIGHTS = list(itertools.accumulate(1 / rank for rank in range(1, len(WORDS) + 1)))
"""Cumulative, by Zipf's law, as the words of a text have them."""


def body(number: int) -> bytes:
    """A page of 80 KB that compresses about as well as text in markup does."""
    rng = random.Random(number)
    lines = (" ".join(rng.choices(WORDS, cum_weights=WEIGHTS, k=12)) for _ in range(1200))
    return "".join(f'<p class="text entry">{line}</p>\n' for line in lines).encode()[: 80 << 10]


def makers() -> dict[str, tuple[Topic, Callable[[int], Any]]]:
    """Topic and message of each kind, by number."""
    bodies = [body(number) for number in range(50)]
    key, url = bytes(range(16)), "https://www.example.org/some/path/to/page.html?item=12345"
    urls = url.encode() * 100
    links = m.Outlinks("job", key, url, 3, random.Random(2).randbytes(1600), urls, bytes(400), bytes(800))
    links.anchors = b"a few words " * 100
    links.anchor_ends, links.flags = bytes(400), bytes(100)
    text = b" ".join(word.encode() for word in WORDS[:800])
    return {
        "request": (REQUESTS, lambda n: m.FetchRequest("job", key, url, "www.example.org", fetch_no=1)),
        "outcome": (OUTCOMES, lambda n: m.FetchOutcome("job", key, "www.example.org", status=200, started_at=1.5)),
        "page": (PAGES, lambda n: m.Page("job", key, url, "www.example.org", body=bodies[n % 50], status=200)),
        "outlinks": (OUTLINKS, lambda n: links),
        "record": (RECORDS, lambda n: m.Record("job", key, url, 1, text=text, title="A title", sha256=bytes(32))),
        "receipt": (RECEIPTS, lambda n: m.Receipts("job", [m.Receipt(key, 1, m.Outcome.STORED, b"12345678")])),
    }


def cpu_of(pid: int) -> float:
    """Seconds of CPU a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def publish(config: KafkaConfig, topic: Topic, make: Callable[[int], Any], count: int) -> float:
    """CPU seconds to publish so many and get all receipts."""
    bus = KafkaBus(config, SystemClock())
    await bus.start()
    room = asyncio.Semaphore(IN_FLIGHT)
    began = time.process_time()
    for number in range(count):
        await room.acquire()
        bus.publish(topic, random.randrange(PARTITIONS), make(number)).add_done_callback(room.release)
    for _ in range(IN_FLIGHT):
        await room.acquire()
    spent = time.process_time() - began
    await bus.close()
    return spent


async def read(config: KafkaConfig, topic: Topic, count: int) -> float:
    """CPU seconds to read so many and ack each; joining included, as it is once."""
    bus, done, got = KafkaBus(config, SystemClock()), asyncio.Event(), [0]

    def take(delivery: Any) -> None:
        got[0] += 1
        delivery.ack()
        if got[0] == count:
            done.set()

    bus.subscribe(topic, f"bench-{topic.name}", take, credits=1000)
    began = time.process_time()
    await bus.start()
    await done.wait()
    spent = time.process_time() - began
    await bus.close()
    return spent


async def run(broker: Broker, pages: int) -> list[dict[str, Any]]:
    """All kinds, one after the other."""
    config = KafkaConfig(bootstrap=broker.address, prefix="bench-", name="bench", partitions=PARTITIONS)
    await admin.apply(config)
    rows = []
    for kind, (topic, make) in makers().items():
        assert broker.process is not None
        # Once before: connections, leaders and the broker's first use of the partitions are not measured.
        await publish(config, topic, make, PARTITIONS * 4)
        await read(config, topic, PARTITIONS * 4)
        before = cpu_of(broker.process.pid)
        published = await publish(config, topic, make, pages)
        taken = await read(config, topic, pages)
        row = {
            "kind": kind,
            "publish_us": published,
            "read_us": taken,
            "broker_us": cpu_of(broker.process.pid) - before,
        }
        rows.append({name: v if name == "kind" else round(v * 1e6 / pages, 1) for name, v in row.items()})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Start a broker, measure, write the raw result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=3000)
    pages = parser.parse_args().pages
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder)).start()
        try:
            rows = asyncio.run(run(broker, pages))
        finally:
            broker.stop()
    total = {name: round(sum(row[name] for row in rows), 1) for name in ("publish_us", "read_us", "broker_us")}
    print(json.dumps({"kind": "all of a page", **total}))
    print(save("bus", {"pages": pages, "rows": rows, "total": total, "versions": versions("aiokafka", "protobuf")}))


if __name__ == "__main__":
    main()
