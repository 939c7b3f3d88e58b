"""The longest step of an exclusion that is tried on a large queue, in memory and on disk, on one host and on many.

    python -m benchmarks.bench_exclusion [--urls 1000000]

Printed: URLs looked at, steps, the longest step and the median in ms of CPU, CPU s in all.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
import time
from types import SimpleNamespace
from typing import Any

from nephila.kernel.runtime.clock import SystemClock
from nephila.native import HostStore
from nephila.scheduler.explain.exclusion_trial import ExclusionTrial, Partition
from nephila.scheduler.frontier.delayed_urls import DelayedUrls
from nephila.scheduler.frontier.queue_entry import Entry, pack

BATCH = 10_000


def filled(directory: str, urls: int, hosts: int) -> HostStore:
    """A store with so many URLs."""
    store = HostStore(directory)
    numbers = [store.host(f"h{number}.test") for number in range(hosts)]
    for start in range(0, urls, BATCH):
        batch = range(start, min(start + BATCH, urls))
        packed = []
        for number in batch:
            url = f"http://h{number % hosts}.test/{'calendar' if number % 9 == 0 else 'docs'}/{number}"
            packed.append(pack(Entry(hashlib.md5(url.encode()).digest(), url=url)))
        for number, one in zip(batch, packed, strict=True):
            store.push(numbers[number % hosts], 1, 3, one)
    return store


def tried(store: HostStore, exclude: list[str]) -> tuple[ExclusionTrial, list[float]]:
    """The trial, and the CPU time of its steps in ms: wall time on a busy machine is that of others."""
    job: Any = SimpleNamespace(number=1, left_scope=lambda entry, host: "")
    frontier: Any = SimpleNamespace(store=store, delayed=DelayedUrls(SimpleNamespace(numbered={})))  # type: ignore[arg-type]
    trial = ExclusionTrial([Partition(frontier, job)], exclude, SystemClock())
    steps = []
    while not trial.done:
        began = time.thread_time()
        trial.step()
        steps.append((time.thread_time() - began) * 1000)
    return trial, steps


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=1_000_000)
    urls = parser.parse_args().urls
    print(
        f"{'queue':<36} {'looked at':>10} {'removed':>9} {'steps':>6} {'longest ms':>11} {'median ms':>10} {'CPU s':>6}"
    )
    for hosts in (1, urls // 10):
        with tempfile.TemporaryDirectory() as directory:
            store = filled(directory, urls, hosts)
            for where in ("memory", "disk"):
                if where == "disk":
                    store.checkpoint()
                for patterns in (["/calendar/"], ["/calendar/", *(f"/nothing{n}/" for n in range(19))]):
                    began = time.process_time()
                    trial, steps = tried(store, patterns)
                    passed = time.process_time() - began
                    name = f"{urls:,} on {hosts:,}, {where}, {len(patterns)} RE"
                    figures = f"{max(steps):>11.1f} {statistics.median(steps):>10.1f} {passed:>6.2f}"
                    print(
                        f"{name:<36} {trial.looked_at:>10,} {trial.removed:>9,} {len(steps):>6} {figures}", flush=True
                    )


if __name__ == "__main__":
    main()
