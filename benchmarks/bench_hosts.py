"""The host store at 10^5 to 10^7 URLs: cost per push, pop and workbench step, pauses of checkpoints, restore, memory.

usage: python -m benchmarks.bench_hosts [--urls 100000,1000000,10000000] [--shapes zipf,one-host,one-each]
                                        [--directory DIR]

Each line is a process of its own. URLs have 90 bytes and are pushed in pages of 50, with a checkpoint per 500,000.
Shape zipf: a host per ten URLs, the largest with a tenth of all. Then everything is restored, and a workbench of all
hosts runs through turns of 1,000 ready hosts, one URL each. Targets at 10^7: push with checkpoints 1 µs, pop 2 µs, a
step of the workbench 1 µs (CPU), restore 3 s, 500 MB.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterator
from itertools import accumulate
from os import getpid
from typing import Any

from nephila.native import IMPLEMENTATION, HostStore

from benchmarks import measure, report
from benchmarks.measure import Clock

PAGE = 50
CHECKPOINT = 500_000
TURN = 1_000
JOB = 3
POPS = 1_000_000
SKEW = 1.06
"""Exponent at which the first of 10^6 hosts has a tenth of the URLs."""


def ranks(shape: str, urls: int, rng: random.Random) -> Iterator[list[int]]:
    """Pages of host ranks; a rank that was not there before is one more than the highest so far."""
    if shape != "zipf":
        each = shape == "one-each"
        yield from ([start + n if each else 0 for n in range(PAGE)] for start in range(0, urls, PAGE))
        return
    hosts, known, first = urls // 10, 0, PAGE // 10
    weights = array("d", accumulate((rank + 1) ** -SKEW for rank in range(hosts)))
    for _ in range(0, urls, PAGE):
        # A tenth of the URLs are the first of their host, so that every host gets one.
        drawn = rng.choices(range(hosts), cum_weights=weights, k=PAGE - first)
        fresh, known = range(known, known + first), known + first
        yield [*fresh, *(rank % known for rank in drawn)]


def packed(number: int, rank: int) -> bytes:
    """A packed URL of 90 bytes or so: fingerprint, counters, URL."""
    key = (number * 0x9E3779B97F4A7C15F39CC0605CEDC835 & (1 << 128) - 1).to_bytes(16, "big")
    return key + bytes(13) + b"https://www.host-%d.test/archive/2026/article-about-no-%d" % (rank, number)


def fill(store: HostStore, shape: str, urls: int) -> dict[str, Any]:
    """Push everything with checkpoints; the figures of that."""
    rng, host, push, save = random.Random(5), Clock(), Clock(), Clock()
    ids, number, size, manifest, peak = array("I"), 0, 0, b"", 0.0
    for page in ranks(shape, urls, rng):
        fresh = range(len(ids), max(page) + 1)
        names = [f"www.host-{rank}.test" for rank in fresh]
        ids.extend(host(lambda names=names: [store.host(name) for name in names]))
        hosts, orders = [ids[rank] for rank in page], [rng.randrange(8) for _ in page]
        batch = [packed(number + n, rank) for n, rank in enumerate(page)]
        size += sum(map(len, batch))
        push(lambda h=hosts, o=orders, b=batch: store.push_many(h, JOB, o, b))
        number += PAGE
        if number % CHECKPOINT == 0 or number == urls:
            peak = max(peak, measure.rss_mb(getpid()))
            manifest = save(store.checkpoint)
            store.cleanup()
            peak = max(peak, measure.rss_mb(getpid()))
    return {
        "hosts": len(ids),
        "url_bytes": round(size / urls, 1),
        "host_us": host.cpu_s / len(ids) * 1e6,
        "push_us": push.cpu_s / urls * 1e6,
        "push_all_us": (push.cpu_s + save.cpu_s) / urls * 1e6,
        "push_all_wall_us": (push.wall_s + save.wall_s) / urls * 1e6,
        "checkpoints": save.calls,
        "longest_pause_s": save.longest_s,
        "mean_pause_s": save.wall_s / save.calls,
        "written_bytes_per_url": store.stats()["written_bytes"] / urls,
        "peak_mb": peak,
        "manifest": manifest.hex(),
    }


def drain(store: HostStore, urls: int) -> dict[str, Any]:
    """Turns of the workbench: hosts that are ready, a URL from each, back to the workbench."""
    rng, take, pop, put = random.Random(6), Clock(), Clock(), Clock()
    for host in store.ids():
        store.schedule(host, rng.random() * 60)
    steps, now = 0, 0.0
    while steps < min(urls, POPS) and (now := store.next_ready() or 0.0) >= 0 and store.waiting():
        now += 1.0
        hosts = take(lambda now=now: ready(store, now))
        found = pop(lambda hosts=hosts: [store.pop(host, JOB) for host in hosts])
        more = [(host, now + 1 + rng.random() * 60) for host, url in zip(hosts, found, strict=True) if url]
        put(lambda more=more: schedule(store, more))
        steps += len(hosts)
    return {
        "steps": steps,
        "pop_us": pop.cpu_s / steps * 1e6,
        "take_ready_us": take.cpu_s / steps * 1e6,
        "schedule_us": put.cpu_s / steps * 1e6,
    }


def ready(store: HostStore, now: float) -> list[int]:
    """At most a turn's hosts."""
    out: list[int] = []
    while len(out) < TURN and (host := store.take_ready(now)) >= 0:
        out.append(host)
    return out


def schedule(store: HostStore, due: list[tuple[int, float]]) -> None:
    """Back to the workbench."""
    for host, at in due:
        store.schedule(host, at)


def one(shape: str, urls: int, directory: str) -> dict[str, Any]:
    """All figures of one shape and size, in this process."""
    before = measure.rss_mb(getpid())
    store = HostStore(directory)
    found = fill(store, shape, urls)
    found["after_mb"] = measure.rss_mb(getpid()) - before
    found["peak_mb"] -= before
    found["nbytes_mb"] = store.nbytes / 1e6
    found["runs"] = store.stats()["runs"]
    del store
    store, restore = HostStore(directory), Clock()
    restore(lambda: store.restore(bytes.fromhex(found.pop("manifest"))))
    assert store.job_length(JOB) == urls
    found |= {"restore_s": restore.wall_s, "restore_cpu_s": restore.cpu_s}
    return found | drain(store, urls)


def child(shape: str, urls: int, directory: str | None) -> dict[str, Any]:
    """The same in a process of its own."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        command = [sys.executable, "-m", "benchmarks.bench_hosts", "--one", shape, str(urls), "--directory", folder]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


COLUMNS = {
    "push µs": "push_us", "with checkpoints": "push_all_us", "wall": "push_all_wall_us", "pause s": "longest_pause_s",
    "pop µs": "pop_us", "take_ready µs": "take_ready_us", "schedule µs": "schedule_us", "restore s": "restore_s",
    "MB": "after_mb", "peak MB": "peak_mb", "written B/URL": "written_bytes_per_url", "runs": "runs",
}  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_hosts", description="The host store at three sizes.")
    parser.add_argument("--urls", default="100000,1000000,10000000")
    parser.add_argument("--shapes", default="zipf,one-host,one-each")
    parser.add_argument("--directory", help="where the files go; a temporary directory when not given")
    parser.add_argument("--one", nargs=2, metavar=("SHAPE", "URLS"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.one:
        what, urls = args.one[0], int(args.one[1])
        print(json.dumps(one(what, urls, args.directory)))
        return 0
    sizes = [int(size) for size in args.urls.split(",")]
    shapes = args.shapes.split(",")
    runs = {f"{shape} {urls}": child(shape, urls, args.directory) for shape in shapes for urls in sizes}
    rows = [(name, *(run.get(key, "") for key in COLUMNS.values())) for name, run in runs.items()]
    print(report.table(("shape and URLs", *COLUMNS), rows))
    path = report.save("hosts", {"implementation": IMPLEMENTATION, "runs": runs})
    print(f"raw: benchmarks/results/{path.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
