"""The frontier at 10^5 to 10^7 queued URLs: cost per link and per URL, pauses of snapshots, memory, restart, dispatch.

usage: python -m benchmarks.bench_frontier [--runs zipf:100000,…] [--directory DIR]

Each line is a process of its own, its restart another. Pages of 100 links go through what a page's links go through in
the product: page pass (resolved, canonical, fingerprints), seen, traps, queue, one commit per page, fsync each second,
a snapshot per 64 MiB of log. A filling run admits nothing but new URLs; then come pages of which 10, 25 and 50 % of the
links are new, the snapshots' share added. The restart reads a log that is nearly due for the next snapshot; then URLs
are leased, fetched and ended. CPU seconds of the process; pauses and restart in wall time as well.
"""

import argparse
import gc
import hashlib
import json
import random
import resource
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
    FetchOutcome,
    FetchRequest,
    FetchResult,
    Outcome,
    Outlinks,
    Receipt,
    Receipts,
)
from nephila.native import IMPLEMENTATION, PassOptions, page_pass
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.durability.commit_log import CommitLog
from nephila.scheduler.durability.recovery import open_frontier, restore
from nephila.scheduler.durability.snapshots import cleanup, snapshots
from nephila.scheduler.engine.admission import add_links
from nephila.scheduler.engine.dispatch import Dispatcher
from nephila.scheduler.engine.job_changes import put_job
from nephila.scheduler.frontier.host_state import TurnOutput

from benchmarks import measure, report
from benchmarks.frontier_load import LINKS, SHAPES, Web
from benchmarks.measure import Clock

RUNS = "zipf:100000,zipf:1000000,zipf:10000000,one-host:10000000,one-each:1000000"
JOB = "bench"
BATCH = 50
"""Pages made at a time, before the clock runs."""
MIXED = 500
"""Pages of each mix."""
SHARES = (10, 25, 50)
FETCHES = 200_000
"""URLs leased and ended after a restart."""
TURN_S = 0.1
UTC = 1_800_000_000.0


class Bench:
    """A frontier with its log, driven as the service drives them; one clock per part."""

    def __init__(self, directory: str) -> None:
        self.config = SchedulerConfig(directory=directory, concurrency=1024)
        self.frontier = open_frontier(self.config, random.Random(1))
        self.dispatcher = Dispatcher(self.frontier)
        self.log = CommitLog(Path(directory))
        self.parse, self.admit, self.commit, self.snapshot = Clock(), Clock(), Clock(), Clock()
        self.synced = time.monotonic()
        self.bytes = 0

    @property
    def cpu_s(self) -> float:
        """All parts."""
        return self.parse.cpu_s + self.admit.cpu_s + self.commit.cpu_s + self.snapshot.cpu_s

    def turn(self) -> None:
        """The end of a turn of the service, but for publishing."""
        before = self.log.size
        self.log.append(self.frontier.pending.commits())
        self.bytes += self.log.size - before
        self.dispatcher.trim_hosts()
        if time.monotonic() - self.synced >= self.config.fsync_interval_s:
            self.log.sync()
            self.synced = time.monotonic()

    def feed(self, pages: list[tuple[str, bytes]], depth: int = 3) -> tuple[int, int]:
        """Pages through all parts, one turn each; returns (links, URLs admitted)."""
        messages = self.parse(lambda: [links_of(url, body, depth) for url, body in pages])
        admitted = 0
        for message in messages:
            admitted += self.admit(lambda message=message: add_links(self.frontier, message))
            self.commit(self.turn)
        if self.log.size > self.config.segment_bytes:
            self.snapshot(self._snapshot)
        return sum(len(message.fingerprints) // 16 for message in messages), admitted

    def _snapshot(self) -> None:
        self.log.snapshot(snapshots(self.dispatcher))
        cleanup(self.frontier)


def links_of(url: str, body: bytes, depth: int) -> Outlinks:
    """What the parser makes of a page."""
    found = page_pass(body, url, "utf-8", PassOptions(main_text=False))
    return Outlinks(
        JOB,
        hashlib.md5(url.encode()).digest(),
        url,
        depth,
        found.fingerprints,
        found.link_urls,
        found.link_ends,
        found.host_spans,
        found.anchors,
        found.anchor_ends,
        found.link_flags,
    )


def pages_of(shape: str, web: Web, new: int) -> list[tuple[str, bytes]]:
    """The next pages."""
    return [SHAPES[shape](web, new) for _ in range(BATCH)]


def fill(bench: Bench, shape: str, web: Web, urls: int) -> dict[str, Any]:
    """Admit new URLs only; the figures of that. The last tenth by itself: what it costs at that size."""
    made, mark = 0, (0, 0.0)
    while made < urls:
        made += bench.feed(pages_of(shape, web, LINKS))[1]
        if not mark[0] and made >= urls * 9 // 10:
            mark = made, bench.cpu_s - bench.snapshot.cpu_s
    cost = bench.cpu_s
    return {
        "urls": made,
        "hosts": len(bench.frontier.hosts),
        "canonical_us": bench.parse.cpu_s / made * 1e6,
        "admit_us": bench.admit.cpu_s / made * 1e6,
        "log_us": bench.commit.cpu_s / made * 1e6,
        "snapshots_us": bench.snapshot.cpu_s / made * 1e6,
        "all_us": cost / made * 1e6,
        "admitted_per_s": made / (cost - bench.parse.cpu_s),
        "wall_us": sum(part.wall_s for part in (bench.parse, bench.admit, bench.commit, bench.snapshot)) / made * 1e6,
        "last_tenth_us": (cost - bench.snapshot.cpu_s - mark[1]) / max(made - mark[0], 1) * 1e6,
        "log_bytes_per_url": bench.bytes / made,
        "rss_mb": measure.rss_mb(getpid()),
    }


def mixes(bench: Bench, shape: str, web: Web, snapshot_us: float) -> Iterator[tuple[str, float]]:
    """(name, links/s) of pages of which some links are new; the snapshots that new URLs cost are added."""
    for share in SHARES:
        before, links, admitted = bench.cpu_s - bench.snapshot.cpu_s, 0, 0
        for _ in range(MIXED // BATCH):
            found = bench.feed(pages_of(shape, web, share))
            links, admitted = links + found[0], admitted + found[1]
        cost = bench.cpu_s - bench.snapshot.cpu_s - before + admitted * snapshot_us / 1e6
        yield f"links_per_s_{share}", links / cost
        yield f"new_share_{share}", admitted / links


def one(shape: str, urls: int, directory: str) -> dict[str, Any]:
    """All figures of one shape and size but for the restart, in this process."""
    bench = Bench(directory)
    bench.log.open()
    bench.frontier.begin_turn(1.0, UTC)
    job = job_of(JOB, JobSpec(scope=Scope(mode="any"), politeness=Politeness(delay="1s", respect_robots=False)))
    job.generation = 1
    put_job(bench.frontier, job)
    web = Web(max(urls // 10, 1) if shape == "zipf" else 1, random.Random(5))
    found = fill(bench, shape, web, urls)
    found |= dict(mixes(bench, shape, web, found["snapshots_us"]))
    while bench.snapshot.calls and bench.log.size < bench.config.segment_bytes * 19 // 20:
        bench.feed(pages_of(shape, web, LINKS))
    bench.log.close()
    return found | {
        "snapshots": bench.snapshot.calls,
        "longest_pause_s": bench.snapshot.longest_s,
        "longest_pause_cpu_s": bench.snapshot.longest_cpu_s,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "files_mb": sum(file.stat().st_size for file in Path(directory).iterdir()) / 1e6,
        "tail_mb": bench.log.size / 1e6,
        "queued": bench.frontier.jobs[JOB].queue.length,
    }


# ---- after a restart


def again(fetches: int, directory: str) -> dict[str, Any]:
    """Restore what `one` has left, then fetch from it, in this process."""
    before = measure.rss_mb(getpid())
    opening = Clock()
    bench = opening(lambda: Bench(directory))
    restored = opening(lambda: restore(bench.dispatcher, bench.log.recover(), 1.0, UTC))
    opening(bench.log.open)
    found = {
        "restart_s": opening.wall_s,
        "restart_cpu_s": opening.cpu_s,
        "restored": restored.urls,
        "replayed": restored.commits,
        "restart_mb": measure.rss_mb(getpid()),
        "program_mb": before,
    }
    return found | dispatch(bench, fetches)


def dispatch(bench: Bench, fetches: int) -> dict[str, Any]:
    """Lease and end URLs; a turn each tenth of a second, on a clock that stands still while nothing happens."""
    now, ended, lease, end = 2.0, 0, Clock(), Clock()
    before = measure.rss_mb(getpid())
    for _ in range(fetches):
        out = TurnOutput()
        bench.frontier.begin_turn(now, UTC + now)
        lease(lambda now=now, out=out: bench.dispatcher.dispatch(now, out))
        bench.commit(bench.turn)
        requests = [request for _, request in out.requests]
        outcomes = [fetched(request, UTC + now) for request in requests]
        receipts = Receipts(
            JOB,
            [
                Receipt(r.url_key, r.fetch_no, Outcome.STORED, r.url_key, size_bytes=80_000 + 7 * n)
                for n, r in enumerate(requests, ended)
            ],
        )
        end(lambda now=now, outcomes=outcomes, receipts=receipts: finish(bench, outcomes, receipts, now))
        bench.commit(bench.turn)
        if bench.log.size > bench.config.segment_bytes:
            bench.snapshot(bench._snapshot)
        ended += len(requests)
        if ended >= fetches:
            break
        now = max(now + TURN_S, bench.dispatcher.next_event() or 0.0)
    cost = lease.cpu_s + end.cpu_s + bench.commit.cpu_s + bench.snapshot.cpu_s
    return {
        "fetches": ended,
        "lease_us": lease.cpu_s / ended * 1e6,
        "end_us": end.cpu_s / ended * 1e6,
        "fetch_us": cost / ended * 1e6,
        "fetches_per_s": ended / cost,
        "after_mb": measure.rss_mb(getpid()),
        "grown_bytes_per_fetch": (measure.rss_mb(getpid()) - before) * (1 << 20) / ended,
        "fetch_pause_s": bench.snapshot.longest_s,
        "virtual_s": now,
    }


def fetched(request: FetchRequest, utc: float) -> FetchOutcome:
    """The outcome of a fetch of a tenth of a second, from an address of the host's own."""
    number = int.from_bytes(hashlib.md5(request.host.encode()).digest()[:4], "big")
    address = f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return FetchOutcome(
        JOB,
        request.url_key,
        request.host,
        request.kind,
        request.fetch_no,
        request.attempt,
        request.epoch,
        FetchResult.FETCHED,
        status=200,
        started_at=utc - 0.1,
        ended_at=utc,
        address=address,
        wire_bytes=20_000,
        lease_until=request.lease_until,
    )


def finish(bench: Bench, outcomes: list[FetchOutcome], receipts: Receipts, now: float) -> None:
    """Outcomes and receipts of a turn's fetches."""
    out = TurnOutput()
    for outcome in outcomes:
        bench.dispatcher.outcomes.outcome(outcome, now, out)
    bench.dispatcher.endings.receipts(receipts)


# ---- the command


def child(*arguments: str) -> dict[str, Any]:
    """A part of it in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_frontier", *arguments]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found


def run(shape: str, urls: str, directory: str | None) -> dict[str, Any]:
    """Everything of one line."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        found = child("--one", shape, urls, "--directory", folder)
        return found | child("--again", str(FETCHES if shape != "one-host" else FETCHES // 20), "--directory", folder)


def ratios(first: dict[str, Any], last: dict[str, Any]) -> str:
    """How much more a URL costs."""
    parts = {"all": "all_us", "admit": "admit_us", "last tenth": "last_tenth_us", "canonical": "canonical_us"}
    return ", ".join(f"{name} x {last[key] / first[key]:.2f}" for name, key in parts.items())


COLUMNS = {
    "hosts": "hosts", "canonical µs": "canonical_us", "admit µs": "admit_us", "log µs": "log_us",
    "snapshots µs": "snapshots_us", "all µs": "all_us", "last tenth µs": "last_tenth_us", "URLs/s": "admitted_per_s",
    "links/s 10 % new": "links_per_s_10", "25 %": "links_per_s_25", "50 %": "links_per_s_50",
    "pause s": "longest_pause_s", "CPU s": "longest_pause_cpu_s", "MB": "rss_mb", "peak MB": "peak_mb",
    "files MB": "files_mb",
}  # fmt: skip
RESTART = {
    "URLs": "restored", "s": "restart_s", "CPU s": "restart_cpu_s", "log MB": "tail_mb", "MB": "restart_mb",
    "lease µs": "lease_us", "end µs": "end_us", "fetch µs": "fetch_us", "fetches/s": "fetches_per_s",
    "MB after": "after_mb", "pause s": "fetch_pause_s",
}  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_frontier", description="The frontier at several sizes.")
    parser.add_argument("--runs", default=RUNS, help="shape:URLs, with commas between")
    parser.add_argument("--directory", help="where the files go; a temporary directory when not given")
    parser.add_argument("--one", nargs=2, metavar=("SHAPE", "URLS"), help=argparse.SUPPRESS)
    parser.add_argument("--again", type=int, metavar="FETCHES", help=argparse.SUPPRESS)
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
    wanted = [name.split(":") for name in args.runs.split(",")]
    runs = {f"{shape}:{urls}": run(shape, urls, args.directory) for shape, urls in wanted}
    for title, columns in (("filling", COLUMNS), ("restart and fetches", RESTART)):
        print(
            report.table(
                (title, *columns), [(name, *(found[key] for key in columns.values())) for name, found in runs.items()]
            )
        )
    same = [found for name, found in runs.items() if name.startswith("zipf:")]
    if len(same) > 1:
        print(f"zipf, the last size to the first: {ratios(same[0], same[-1])}; canonical is the same work at each size")
    path = report.save("frontier", {"implementation": IMPLEMENTATION, "runs": runs})
    print(f"raw: benchmarks/results/{path.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
