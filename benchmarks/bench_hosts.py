"""Memory and disk of idle hosts by their state, the time of a restart, and the law for ten million of them.

usage: python -m benchmarks.bench_hosts [--hosts 100000,1000000] [--states waiting,fetched,denied] [--directory DIR]

The real frontier with its log and snapshots; downloader, parser and storage are stand-ins on a virtual clock. States:
`waiting`, one URL queued and nothing fetched; `fetched`, robots.txt and one page fetched, nothing queued; `denied`, a
robots.txt that forbids the only URL, so the host is known by it alone. Each line is a process of its own, its restart
another. Parts are those that the host store and the seen set count. RSS has the table of domains too (at most 131,072).
"""

import argparse
import gc
import hashlib
import json
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from os import getpid
from pathlib import Path
from typing import Any

from nephila.kernel.documents.job_document import job_of
from nephila.kernel.documents.job_schema import JobSpec, Politeness, Scope
from nephila.kernel.messages import (
    FetchKind,
    FetchOutcome,
    FetchRequest,
    FetchResult,
    Outcome,
    Outlinks,
    Receipt,
    Receipts,
)
from nephila.kernel.process.process_setup import free_unused_memory
from nephila.native import parse_url
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.durability.recovery import open_frontier, restore
from nephila.scheduler.durability.snapshots import cleanup, snapshots
from nephila.scheduler.engine import domain_budgets
from nephila.scheduler.engine.admission import add_links
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.frontier.host_state import TurnOutput

from benchmarks import measure, report

JOB = "bench"
UTC = 1_800_000_000.0
LINKS = 1000
"""Links of a message."""
TOOK_S = 0.1
ROBOTS = {"fetched": b"User-agent: *\nDisallow: /search\n", "denied": b"User-agent: *\nDisallow: /\n"}
PARTS = ("name_bytes", "host_bytes", "queue_bytes", "slice_bytes", "schedule_bytes", "fresh_bytes")


class Crawl:
    """A frontier with its log, driven as the service drives them."""

    def __init__(self, directory: str) -> None:
        self.config = SchedulerConfig(directory=directory, concurrency=1024, window=4096)
        self.frontier = open_frontier(self.config, random.Random(1))
        self.dispatcher = Dispatcher(self.frontier)
        self.log = CommitLog(Path(directory))
        self.now = 1.0
        self.longest_pause_s = 0.0

    def begin(self) -> None:
        """Open the log and put the job."""
        self.log.open()
        self.frontier.begin_turn(self.now, UTC)
        job = job_of(JOB, JobSpec(scope=Scope(mode="any"), politeness=Politeness(delay="1s")))
        job.generation = 1
        put_job(self.frontier, job)

    def turn(self) -> None:
        """The end of a turn of the service, but for publishing."""
        if self.frontier.jobs.with_domains:
            domain_budgets.end_turn(self.frontier)
        self.log.append(self.frontier.pending.commits())
        self.dispatcher.trim_hosts()
        if self.log.size + self.frontier.hosts.written_bytes > self.config.segment_bytes:
            self.snapshot()

    def snapshot(self) -> None:
        """Write a snapshot; the loop of the program is blocked meanwhile."""
        began = time.perf_counter()
        self.log.snapshot(snapshots(self.dispatcher))
        cleanup(self.frontier)
        free_unused_memory()
        self.frontier.hosts.checkpointed()
        self.longest_pause_s = max(self.longest_pause_s, time.perf_counter() - began)

    def fill(self, hosts: int) -> None:
        """One URL on each host."""
        for first in range(0, hosts, LINKS):
            self.frontier.begin_turn(self.now, UTC + self.now)
            add_links(self.frontier, page(first, min(LINKS, hosts - first)))
            self.turn()

    def fetch_all(self, state: str) -> None:
        """Fetch until nothing is left."""
        while True:
            out = TurnOutput()
            self.frontier.begin_turn(self.now, UTC + self.now)
            self.dispatcher.dispatch(self.now, out)
            self.turn()
            requests = [request for _, request in out.requests]
            ended = [Receipt(record.url_key, record.fetch_no, Outcome.DENIED) for _, record in out.records]
            for request in requests:
                self.dispatcher.outcomes.outcome(outcome(request, UTC + self.now, ROBOTS[state]), self.now, out)
                if request.kind is not FetchKind.ROBOTS:
                    ended.append(Receipt(request.url_key, request.fetch_no, Outcome.STORED, request.url_key))
            if ended:
                self.dispatcher.endings.receipts(Receipts(JOB, ended))
            upcoming = self.dispatcher.next_event()
            if not requests and not ended and upcoming is None:
                return
            self.now = max(self.now + TOOK_S, upcoming or 0.0)


def page(first: int, count: int) -> Outlinks:
    """The message of a page whose links lead to a host each."""
    parts = [
        parse_url(f"http://www.host-{n}.test/archive/2026/article-about-no-{n}") for n in range(first, first + count)
    ]
    ends: list[int] = []
    spans: list[int] = []
    at = 0
    for part in parts:
        spans += (at + 7, at + 7 + len(part.host_key))
        at += len(part.href)
        ends.append(at)
    url = f"http://lists.test/{first}"
    return Outlinks(
        JOB, hashlib.md5(url.encode()).digest(), url, 1, b"".join(part.fingerprint for part in parts),
        "".join(part.href for part in parts).encode(), struct.pack(f"<{count}I", *ends),
        struct.pack(f"<{2 * count}I", *spans), anchor_ends=bytes(4 * count), flags=bytes(count),
    )  # fmt: skip


def outcome(request: FetchRequest, utc: float, robots: bytes) -> FetchOutcome:
    """The outcome of a fetch from an address of the host's own."""
    number = int.from_bytes(hashlib.md5(request.host.encode()).digest()[:4], "big")
    address = f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return FetchOutcome(
        request.job, request.url_key, request.host, request.kind, request.fetch_no, request.attempt, request.epoch,
        FetchResult.FETCHED, status=200, started_at=utc - TOOK_S, ended_at=utc, address=address, wire_bytes=20_000,
        lease_until=request.lease_until, body=robots if request.kind is FetchKind.ROBOTS else b"",
    )  # fmt: skip


def figures(crawl: Crawl, hosts: int, base: int) -> dict[str, Any]:
    """Bytes per host by part, and of the process."""
    gc.collect()
    store, job = crawl.frontier.store, crawl.frontier.jobs[JOB]
    stats = store.stats()
    parts = {part: stats.get(part, 0) / hosts for part in PARTS}
    return {
        **parts,
        "seen_bytes": job.seen.nbytes / hosts,
        "counted_bytes": (store.nbytes + job.seen.nbytes) / hosts,
        "rss_bytes": (measure.resident_bytes() - base) / hosts,
        "rss_mb": measure.rss_mb(getpid()),
        "hosts": len(store),
        "queued": job.queue.length,
        "objects": len(crawl.frontier.hosts.hot),
        "ready": len(crawl.frontier.readiness.ready),
    }


def one(state: str, hosts: int, directory: str) -> dict[str, Any]:
    """All figures of a state but for the restart, in this process."""
    crawl = Crawl(directory)
    crawl.begin()
    base, began = measure.resident_bytes(), time.process_time()
    crawl.fill(hosts)
    if state != "waiting":
        crawl.fetch_all(state)
    cpu_s = time.process_time() - began
    before = figures(crawl, hosts, base)
    crawl.snapshot()
    after = figures(crawl, hosts, base)
    kinds = {"runs": "queue-*.run", "table": "queue-*.hosts", "seen": "seen-*", "all": "*"}
    files = {
        kind: sum(file.stat().st_size for file in Path(directory).glob(pattern)) / hosts
        for kind, pattern in kinds.items()
    }
    crawl.log.close()
    return {
        "cpu_us_per_host": cpu_s / hosts * 1e6,
        "before_snapshot": before,
        "after_snapshot": after,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "program_mb": base / 2**20,
        "longest_pause_s": crawl.longest_pause_s,
        "file_bytes": files,
    }


def again(hosts: int, directory: str) -> dict[str, Any]:
    """A restart from the files of `one`, in this process."""
    crawl = Crawl(directory)
    base, wall, cpu = measure.resident_bytes(), time.perf_counter(), time.process_time()
    restore(crawl.dispatcher, crawl.log.recover(), 1.0, UTC)
    crawl.log.open()
    return {
        "restart_s": time.perf_counter() - wall,
        "restart_cpu_s": time.process_time() - cpu,
        "restarted": figures(crawl, hosts, base),
        "restart_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def run(state: str, hosts: str, directory: str | None) -> dict[str, Any]:
    """Everything of one line."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        return child("--one", state, hosts, "--directory", folder) | child("--again", hosts, "--directory", folder)


def child(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.bench_hosts", *arguments]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return result


def rows(runs: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    """Lines of the table, bytes per host."""
    for name, line in runs.items():
        for moment in ("before_snapshot", "after_snapshot", "restarted"):
            at = line[moment]
            sizes = [at[part] for part in (*PARTS, "seen_bytes", "counted_bytes", "rss_bytes")]
            yield (f"{name}, {moment.replace('_', ' ')}", *sizes, at["rss_mb"])


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_hosts", description="Memory of idle hosts.")
    parser.add_argument("--hosts", default="100000,1000000", help="numbers of hosts, with commas between")
    parser.add_argument("--states", default="waiting,fetched,denied")
    parser.add_argument("--directory", help="where the files go; a temporary directory when not given")
    parser.add_argument("--one", nargs=2, metavar=("STATE", "HOSTS"), help=argparse.SUPPRESS)
    parser.add_argument("--again", type=int, metavar="HOSTS", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.one or args.again:
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)  # as the program does
        print(
            json.dumps(
                one(args.one[0], int(args.one[1]), args.directory) if args.one else again(args.again, args.directory)
            )
        )
        return 0
    runs = {
        f"{state}:{hosts}": run(state, hosts, args.directory)
        for hosts in args.hosts.split(",")
        for state in args.states.split(",")
    }
    heads = (
        "bytes per host",
        "names",
        "hosts",
        "queues",
        "slices",
        "schedule",
        "fresh",
        "seen",
        "counted",
        "RSS",
        "MB",
    )
    print(report.table(heads, list(rows(runs))))
    more = ("program_mb", "peak_mb", "restart_s", "restart_cpu_s", "longest_pause_s", "cpu_us_per_host")
    print(report.table(("", *more), [(name, *(line[key] for key in more)) for name, line in runs.items()]))
    print(report.table(("files, bytes per host", "runs", "table", "seen", "all"),
                       [(name, *line["file_bytes"].values()) for name, line in runs.items()]))  # fmt: skip
    print(f"raw: benchmarks/results/{report.save('hosts', {'runs': runs}).name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
