"""A cluster of 1,000 or 10,000 members in one process: joins, deaths, a region gone, on a virtual clock.

Real code: ring, group membership, address lock and status of jobs, for all members up to `--whole`. Beyond, the other
members are in the ring with the real membership and write their messages, and `--whole` members read everything: a
member's cost depends on what is written. Stand-ins: the broker (simulated_group.py), frontiers and hosts
(simulated_member.py). A pause of a partition ends when all members know its new owner.

Broad crawls by members with real frontiers (simulated_crawl.py): what link farms take of pages and requests, and what
the tables of domains cost. `--crawls MEMBERS:PARTITIONS:FARMS`, partitions of each member, registrable domains of the
farm; the web and the pages grow with the members.

    python -m benchmarks.bench_simulation [--members 100 1000 10000] [--whole 1000] [--plot docs/simulation.svg]
    python -m benchmarks.bench_simulation --members --crawls 1:1:1 1:16:1
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

from nephila.kernel.documents.job_document import job_of
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.messages import AddressAnnouncement
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import ADDRESSES

from benchmarks.bench_farm import WAYS, WEBS, crawl
from benchmarks.report import save, table
from benchmarks.simulated_crawl import GOOD_HOSTS
from benchmarks.simulated_group import SITES_S, Group, SharedLog, Traffic
from benchmarks.simulated_member import Pauses, Whole, Writer

PARTITIONS = {100: 1024, 1000: 4096, 10_000: 16_384}
STEADY_S = 5.0
LIMIT_S = 400.0
"""A step that takes longer is not over."""
HAND_OVER_S = 4.0
"""A rebalance, the work in flight, and the next rebalance: until then a step is not over."""
CLAIMS = 10
"""Addresses that a writer claims."""
SHARED = 4
"""Addresses that several whole members want."""
SHARERS = 8
CRAWLS = ("1:1:1", "1:16:1", "4:16:1", "16:16:1", "4:16:10", "4:16:100")
PAGES = 20_000
"""Pages of a crawl for each member."""


class Cluster:
    """One simulated cluster."""

    def __init__(self, members: int, partitions: int, whole: int, jobs: int) -> None:
        self.clock = ManualClock()
        self.traffic = Traffic()
        self.log = SharedLog(self.clock, self.traffic)
        self.group = Group(self.clock, partitions)
        self.pauses = Pauses(self.clock)
        self.members: dict[str, Whole | Writer] = {}
        self.partitions = partitions
        self.whole = whole
        self.jobs = [job_of(f"job-{number}", JobSpec()) for number in range(jobs)]
        for job in self.jobs:
            job.generation = 1
        self._answers = False
        self.log.on_append.append(self._on_append)
        self._numbers = iter(range(10**9))
        self.add(members)

    def add(self, count: int) -> None:
        """New members join at once."""
        new = [self._new() for _ in range(count)]
        for number, member in enumerate(new):
            self.members[member.name] = member
            at = self.clock.monotonic() + number / count
            self.clock.call_at(at, partial(member.start, self.jobs))
        self.clock.advance(1.0)
        self.group.join(*new)

    def _new(self) -> Whole | Writer:
        number = next(self._numbers)
        name, site = f"scheduler-{number}", number % len(SITES_S)
        if number < self.whole:
            return Whole(name, site, self.clock, self.log, self.pauses, self.partitions)
        return Writer(name, site, self.clock, self.log, self.pauses, CLAIMS)

    def kill(self, victims: list[Whole | Writer]) -> None:
        """These members end without a word."""
        for member in victims:
            member.kill()
            del self.members[member.name]
        self.group.died(victims)

    def settle(self) -> float:
        """Advance until all partitions are served; returns the virtual seconds."""
        began = self.clock.monotonic()
        while self.clock.monotonic() < began + LIMIT_S:
            self.clock.advance(1.0)
            quiet = self.group.idle and not self.pauses.open
            if quiet and len(self.pauses.found) and self.clock.monotonic() > began + HAND_OVER_S:
                break
        return self.clock.monotonic() - began

    def _on_append(self, topic: Any, message: Any) -> None:
        """Writers see what concerns them."""
        if topic is not ADDRESSES:
            return
        one = self.members.get(message.member)
        if isinstance(one, Writer):
            one.on_announced(message)
        if isinstance(message, AddressAnnouncement) and message.sync_request and not self._answers:
            self._answers = True
            self.clock.call_at(self.clock.monotonic() + 0.05, self._answer)

    def _answer(self) -> None:
        self._answers = False
        for member in self.members.values():
            if isinstance(member, Writer):
                member.answer()


def measure(cluster: Cluster, what: str, change: Any, fixed_s: float = 0.0) -> dict[str, Any]:
    """One step: the change, and what it costs until all partitions are served again."""
    group, pauses = cluster.group, cluster.pauses
    pauses.found.clear()
    cluster.traffic.sent.clear()
    cluster.traffic.largest.clear()
    cluster.log.cpu_s.clear()
    group.forget()
    began, cpu = time.monotonic(), time.process_time()
    at = cluster.clock.monotonic()
    change()
    if fixed_s:
        cluster.clock.advance(fixed_s)
    else:
        cluster.settle()
    span = cluster.clock.monotonic() - at
    readers = sum(isinstance(one, Whole) for one in cluster.members.values()) or 1
    found = sorted(pauses.found)
    sent = cluster.traffic.sent
    return {
        "step": what,
        "virtual_s": round(span, 1),
        "moved": len(found),
        "pause_median_s": round(statistics.median(found), 2) if found else 0.0,
        "pause_longest_s": round(found[-1], 2) if found else 0.0,
        "unserved": pauses.open,
        "rebalances": len(group.plans_s),
        "plan_cpu_s": round(max(group.plans_s, default=0.0), 3),
        "stall_s": round(max(group.stalls, default=0.0), 2),
        "join_mb": round(sum(group.join_bytes) / 1e6, 3),
        "share_mb": round(sum(group.share_bytes) / 1e6, 3),
        "messages_read_per_member_s": round(sum(count for count, _ in sent.values()) / span, 1),
        "bytes_read_per_member_s": round(sum(size for _, size in sent.values()) / span),
        "bytes_written_per_member_s": round(sum(size for _, size in sent.values()) / span / len(cluster.members), 1),
        "cpu_per_member_s": {name: round(spent / readers / span, 5) for name, spent in cluster.log.cpu_s.items()},
        "cpu_total_per_member_s": round((time.process_time() - cpu) / readers / span, 5),
        "topics": {name: [count, size, cluster.traffic.largest[name]] for name, (count, size) in sent.items()},
        "real_s": round(time.monotonic() - began, 1),
        "real_cpu_s": round(time.process_time() - cpu, 1),
    }


def simulate(members: int, whole: int, jobs: int) -> dict[str, Any]:
    """All steps at one size."""
    partitions = PARTITIONS.get(members) or max(64, 1 << (4 * members - 1).bit_length())
    rows: list[dict[str, Any]] = []
    cluster = Cluster(members, partitions, whole, jobs)

    def step(what: str, change: Any, fixed_s: float = 0.0) -> None:
        rows.append(measure(cluster, what, change, fixed_s))
        print(f"  {members} members: " + ", ".join(f"{key} {rows[-1][key]}" for key in COLUMNS), flush=True)

    step("all start", lambda: None)
    share_addresses(cluster)
    step("steady", lambda: None, STEADY_S)
    step("1 joins", lambda: cluster.add(1))
    step("1 dies", lambda: cluster.kill(last(cluster, 1)))
    step("1 % die", lambda: cluster.kill(last(cluster, max(members // 100, 2))))
    region = [one for one in cluster.members.values() if one.site == 2]
    step("a region gone", lambda: cluster.kill(region))
    step("it returns", lambda: cluster.add(len(region)))
    starts = sum(sum(one.starts.values()) for one in cluster.members.values() if isinstance(one, Whole))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "members": members,
        "whole": min(whole, members),
        "partitions": partitions,
        "jobs": jobs,
        "rows": rows,
        "starts_on_shared_addresses": starts,
        "peak_mb": round(peak),
    }


def share_addresses(cluster: Cluster) -> None:
    """Hosts of several members on one server address."""
    readers = [one for one in cluster.members.values() if isinstance(one, Whole)]
    for number in range(SHARED):
        for one in readers[number::SHARED][:SHARERS]:
            one.want(f"192.0.2.{number}", 3)


def last(cluster: Cluster, count: int) -> list[Whole | Writer]:
    """The members that joined last."""
    return list(cluster.members.values())[-count:]


def crawls(size: str) -> list[dict[str, Any]]:
    """The crawls of one size: without the farm, without budgets of domains, with budgets."""
    members, partitions, farms = map(int, size.split(":"))
    hosts = GOOD_HOSTS * members
    web = WEBS["addresses"]._replace(good_hosts=hosts, seeds=hosts, farms=farms)
    rows: list[dict[str, Any]] = []
    for way in WAYS:
        figures = crawl(web, way, PAGES * members, members, partitions)
        rate = rows[0]["good_per_s"] if rows else figures["good_per_s"]
        row = {"members": members, "partitions": members * partitions, "farms": farms, "way": way, **figures}
        rows.append({**row, "of_no_farm": figures["good_per_s"] / rate})
        print("  " + ", ".join(f"{key} {shown(rows[-1][key])}" for key in CRAWL_COLUMNS), flush=True)
    return rows


def shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


CRAWL_COLUMNS = {
    "members": "members",
    "partitions": "partitions",
    "farms": "farm domains",
    "way": "way",
    "pages": "pages",
    "farm_pages": "farm, pages",
    "farm_requests": "farm, requests",
    "of_no_farm": "good pages/s of no farm",
    "hosts_known": "hosts",
    "held_back": "held back",
    "domains_mb": "domains MB",
    "cpu_us_per_page": "CPU µs/page",
}
COLUMNS = {
    "step": "step",
    "moved": "partitions moved",
    "pause_median_s": "pause, median s",
    "pause_longest_s": "longest s",
    "rebalances": "rebalances",
    "plan_cpu_s": "plan CPU s",
    "stall_s": "no poll s",
    "join_mb": "claims MB",
    "messages_read_per_member_s": "messages read/s",
    "bytes_read_per_member_s": "bytes read/s",
}


def main() -> None:
    """Simulate, print the tables, save the result, draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--crawls", nargs="*", default=CRAWLS, help="members:partitions of each:domains of the farm")
    parser.add_argument("--whole", type=int, default=100, help="members that read everything")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--results", type=Path, nargs="+", default=[], help="draw these results of --save instead")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    found = [run for path in options.results for run in json.loads(path.read_text())["runs"]]
    for members in [] if found else options.members:
        found.append(simulate(members, options.whole, options.jobs))
        show(found[-1])
    rows = [row for size in ([] if options.results else options.crawls) for row in crawls(size)]
    if rows:
        print(table(list(CRAWL_COLUMNS.values()), [[shown(row[key]) for key in CRAWL_COLUMNS] for row in rows]))
    if options.save:
        print(save("simulation", {"runs": found, "crawls": rows}))
    if options.plot and found:
        draw(found, options.plot)


def show(one: dict[str, Any]) -> None:
    """The table of one size."""
    print(
        f"\n{one['members']} members ({one['whole']} read all), {one['partitions']} partitions, "
        f"{one['jobs']} running jobs; peak {one['peak_mb']} MB"
    )
    print(table(list(COLUMNS.values()), [[row[key] for key in COLUMNS] for row in one["rows"]]))
    for row in one["rows"]:
        if row["step"] == "steady":
            shares = ", ".join(f"{name} {100 * share:.2f} %" for name, share in row["cpu_per_member_s"].items())
            print(f"steady: CPU of one core per member for reading: {shares}", flush=True)


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """Longest pauses and the plan's CPU by step; bytes and messages that a member reads by size."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "nephila"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8))
    steps = [row["step"] for row in found[0]["rows"] if row["step"] != "steady"]
    width = 0.8 / len(found)
    for number, one in enumerate(found):
        rows = {row["step"]: row for row in one["rows"]}
        places = [at + number * width for at in range(len(steps))]
        label = f"{one['members']:,} members"
        axes[0].bar(places, [rows[step]["pause_longest_s"] for step in steps], width, label=label)
        axes[1].bar(places, [max(rows[step]["plan_cpu_s"], 1e-3) for step in steps], width, label=label)
    for axis, title in ((axes[0], "longest pause of a host, s"), (axes[1], "CPU of the ring at the leader, s")):
        axis.set_title(title, fontsize=10)
        axis.set_xticks([at + 0.4 - width / 2 for at in range(len(steps))], steps, rotation=30, ha="right", fontsize=8)
        axis.grid(alpha=0.3, axis="y")
    axes[1].set_yscale("log")
    axes[0].legend(fontsize=8, frameon=False)
    steady = [next(row for row in one["rows"] if row["step"] == "steady") for one in found]
    sizes = [one["members"] for one in found]
    axes[2].loglog(sizes, [row["bytes_read_per_member_s"] for row in steady], "o-", label="bytes/s")
    axes[2].loglog(sizes, [row["messages_read_per_member_s"] for row in steady], "s-", label="messages/s")
    axes[2].set_title("read by each member, steady", fontsize=10)
    axes[2].set_xlabel("members", fontsize=8)
    axes[2].grid(alpha=0.3)
    axes[2].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
