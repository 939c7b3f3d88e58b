"""How long a partition with many URLs stands still when its scheduler changes: on a join, a kill, a return and a leave.

Real schedulers over a real broker; downloader and storage are this program, which answers every request after 50 ms
and notes when it came. One partition has the URLs and moves, another one stays. A pause is the longest time without
a request of a partition: thousands of its hosts are ready at any time, as the downloader has room for few. "Full"
is when its rate is back at nine tenths of what it was. The blob store is a directory.

    python -m benchmarks.bench_handover [--urls 1000000] [--hosts 10000]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from array import array
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Delivery
from nephila.kernel.bus.kafka.admin import topics as admin
from nephila.kernel.bus.kafka.bus import KafkaBus
from nephila.kernel.bus.kafka.config import KafkaConfig
from nephila.kernel.documents.field_types import duration_text
from nephila.kernel.documents.job_document import job_of
from nephila.kernel.documents.job_schema import JobSpec, Politeness, Scope, Traps
from nephila.kernel.ring import assign_partitions
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.topics import JOBS, OUTCOMES, OUTLINKS, RECEIPTS, RECORDS, REQUESTS
from nephila.native import parse_url, partition_of

from benchmarks.report import save, table, versions
from tools.kafka_broker import Broker
from tools.system import cpu_s

PARTITIONS = 4
DELAY_S = 1.0
ANSWER_S = 0.05
JOB = "bench"
STAYING = (1000, 100)
"""Hosts and URLs per host of the partition that stays."""
WATCH_S = 25.0
BIN_S = 1.0


def hosts_of(partition: int) -> Iterator[str]:
    """Names of hosts in a partition."""
    for number in itertools.count():
        name = f"host{number}.test"
        if partition_of(hashlib.md5(name.encode(), usedforsecurity=False).digest(), PARTITIONS) == partition:
            yield name


def outlinks(urls: list[str]) -> m.Outlinks:
    """Links of a page, as the parser packs them."""
    text, ends, spans, keys = bytearray(), array("I"), array("I"), bytearray()
    for url in urls:
        parts = parse_url(url)
        start = len(text)
        text += url.encode()
        ends.append(len(text))
        spans.extend((start + 7, start + 7 + len(parts.host_key)))
        keys += parts.fingerprint
    none = array("I", [0] * len(urls)).tobytes()
    return m.Outlinks(
        JOB, bytes(16), "", 1, bytes(keys), bytes(text), ends.tobytes(), spans.tobytes(), b"", none, bytes(len(urls))
    )


class World:
    """Downloader and storage."""

    def __init__(self, bus: KafkaBus) -> None:
        self.bus = bus
        self.came: dict[int, list[float]] = defaultdict(list)
        """Partition → when its requests came."""
        bus.subscribe(REQUESTS, "downloader", self._request, credits=1 << 20)
        bus.subscribe(RECORDS, "storage", self._record, credits=1 << 20)

    def _request(self, delivery: Delivery) -> None:
        request, partition = delivery.message, delivery.partition
        self.came[partition].append(time.monotonic())
        delivery.ack()
        asyncio.get_running_loop().call_later(ANSWER_S, self._answer, partition, request, time.time())

    def _answer(self, partition: int, request: m.FetchRequest, started: float) -> None:
        outcome = m.FetchOutcome(
            request.job, request.url_key, request.host, request.kind, request.fetch_no, request.attempt, request.epoch,
            m.FetchResult.FAILED, "http_404", 404, started, time.time(), "127.0.0.1",
            lease_until=request.lease_until,
        )  # fmt: skip
        self.bus.publish(OUTCOMES, partition, outcome)

    def _record(self, delivery: Delivery) -> None:
        row: m.Record = delivery.message
        receipt = m.Receipt(row.url_key, row.fetch_no, row.outcome)
        delivery.ack_after([self.bus.publish(RECEIPTS, delivery.partition, m.Receipts(row.job, [receipt]))])


class Schedulers:
    """Programs by name."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        self.folder = folder
        (folder / "system.yaml").write_text(
            f"bootstrap: {broker.address}\npartitions: {PARTITIONS}\ngrace_s: 10\n"
            f"scheduler: {{blobs: {folder / 'blobs'}, concurrency: 32, window: 512, per_address: 0, "
            "address_gap_s: 0}\n"
        )
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        self.ports = {"a": 19151, "b": 19152}

    def start(self, name: str) -> None:
        """Begin one; its directory stays."""
        environment = {
            **os.environ,
            "NEPHILA_PROGRAM__METRICS_PORT": str(self.ports[name]),
            "NEPHILA_PROGRAM__MEMBER": name,
            "NEPHILA_SCHEDULER__DIRECTORY": str(self.folder / name),
        }
        log = (self.folder / f"{name}.log").open("a")
        words = [sys.executable, "-m", "nephila", "service", "scheduler", "--config", str(self.folder / "system.yaml")]
        self.programs[name] = subprocess.Popen(words, stderr=log, env=environment)

    def figure(self, name: str, figure: str) -> float:
        """One of its metrics; -1 while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}/metrics", timeout=20) as answer:
                text = answer.read().decode()
        except OSError:
            return -1.0
        return float(text.split(f"\nnephila_scheduler_{figure} ")[1].split()[0])

    async def until(self, name: str, figure: str, least: float, limit_s: float = 300.0) -> None:
        """Wait for a metric."""
        end = time.monotonic() + limit_s
        while await asyncio.to_thread(self.figure, name, figure) < least:
            if time.monotonic() > end:
                raise SystemExit(f"{name}: {figure} stayed below {least}")
            await asyncio.sleep(0.2)

    def send(self, name: str, number: int) -> None:
        """A signal."""
        self.programs[name].send_signal(number)

    def end(self) -> None:
        """Kill what is left."""
        for program in self.programs.values():
            program.kill()
            program.wait()


def watched(came: list[float], begin: float, end: float, steady: float) -> dict[str, float]:
    """Longest pause between two instants, when it ended, and when the rate was back."""
    inside = [begin, *(at for at in came if begin <= at <= end), end]
    pauses = [(later - earlier, later) for earlier, later in itertools.pairwise(inside)]
    pause, over = max(pauses, default=(0.0, begin))
    full = over
    while full < end and sum(full <= at < full + BIN_S for at in came) < 0.9 * steady * BIN_S:
        full += BIN_S / 4
    return {"pause_s": round(pause, 2), "full_s": round(full - begin, 2)}


async def run(folder: Path, broker: Broker, urls: int, hosts: int) -> dict[str, Any]:
    """Everything."""
    config = KafkaConfig(bootstrap=broker.address, name="world", partitions=PARTITIONS)
    await admin.apply(config)
    alone = assign_partitions(["a"], PARTITIONS, {})
    both = assign_partitions(["a", "b"], PARTITIONS, dict(enumerate(alone)))
    moving = next(p for p in range(PARTITIONS) if both[p] == "b")
    staying = next(p for p in range(PARTITIONS) if both[p] == "a")
    bus = KafkaBus(config, SystemClock())
    world = World(bus)
    schedulers = Schedulers(folder, broker)
    await bus.start()
    try:
        schedulers.start("a")
        await schedulers.until("a", "partitions", PARTITIONS)
        began, cpu = time.monotonic(), cpu_s(schedulers.programs["a"].pid)
        total = await load(bus, {moving: (hosts, urls // hosts), staying: STAYING})
        await schedulers.until("a", "hosts", hosts + STAYING[0])
        await schedulers.until("a", "urls_queued", total * 0.95)
        cpu = cpu_s(schedulers.programs["a"].pid) - cpu
        print(f"{total:,} URLs loaded in {time.monotonic() - began:.0f} s, {cpu * 1e6 / total:.1f} CPU-us each")
        await asyncio.sleep(WATCH_S)
        now = time.monotonic()
        steady = {p: sum(at > now - 10 for at in world.came[p]) / 10 for p in (moving, staying)}
        print(f"requests/s: {steady[moving]:.0f} of the moving partition, {steady[staying]:.0f} of the one that stays")
        rows = []
        for what, act in phases(schedulers):
            begin = time.monotonic()
            await act()
            await asyncio.sleep(max(WATCH_S - (time.monotonic() - begin), 5.0))
            end = time.monotonic()
            row = {"what": what, **watched(world.came[moving], begin, end, steady[moving])}
            row["staying_pause_s"] = watched(world.came[staying], begin, end, steady[staying])["pause_s"]
            rows.append(row)
            print(json.dumps(row), flush=True)
    finally:
        schedulers.end()
        await bus.close()
    return {"urls": total, "hosts": hosts, "load_cpu_us": cpu * 1e6 / total, "steady": steady[moving], "rows": rows}


def phases(schedulers: Schedulers) -> list[tuple[str, Any]]:
    """What happens, one after the other."""

    async def comes() -> None:
        schedulers.start("b")
        await schedulers.until("b", "partitions", 1)

    async def killed() -> None:
        schedulers.send("b", signal.SIGKILL)
        await schedulers.until("a", "partitions", PARTITIONS)

    async def stops() -> None:
        schedulers.send("b", signal.SIGTERM)
        await schedulers.until("a", "partitions", PARTITIONS)

    return [
        ("b joins, with an empty disk", comes),
        ("b is killed (kill -9, session 6 s)", killed),
        ("b comes back, with the disk it had", comes),
        ("b is stopped (SIGTERM)", stops),
    ]


async def load(bus: KafkaBus, shares: dict[int, tuple[int, int]]) -> int:
    """Publish the job and all links; returns how many."""
    manners = Politeness(delay=duration_text(DELAY_S), respect_robots=False)
    job = job_of(JOB, JobSpec(scope=Scope(mode="any"), politeness=manners, traps=Traps(off=True)))
    job.generation = 1
    await bus.publish(JOBS, 0, job)
    room = asyncio.Semaphore(50)
    total = 0
    for partition, (hosts, pages) in shares.items():
        names = list(itertools.islice(hosts_of(partition), hosts))
        every = (f"http://{name}/a/page/{number}.html" for number in range(pages) for name in names)
        while batch := list(itertools.islice(every, 500)):
            await room.acquire()
            bus.publish(OUTLINKS, partition, outlinks(batch)).add_done_callback(room.release)
            total += len(batch)
            await asyncio.sleep(0)
    for _ in range(50):
        await room.acquire()
    return total


def main() -> None:
    """Start a broker, measure, write the raw result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = Broker(Path(folder)).start()
        try:
            found = asyncio.run(run(Path(folder), broker, given.urls, given.hosts))
        finally:
            broker.stop()
    head = ("", "pause s", "full after s", "pause of what stays s")
    cells = [(row["what"], row["pause_s"], row["full_s"], row["staying_pause_s"]) for row in found["rows"]]
    print(table(head, cells))
    print(save("handover", {**found, "versions": versions("aiokafka", "protobuf")}))


if __name__ == "__main__":
    main()
