"""A capacity plan: from a target to replicas, cores, memory, disks and bandwidth. Pure; each line has its source."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nephila.cli.capacity import figures as f

DAY_S = 86_400.0
UTILISATION = 0.7
"""Share of a core that a plan uses; the rest is for peaks, restarts and recrawl."""
CONCURRENCY = 1000
"""Fetches at once of one downloader (downloader.concurrency)."""
LEAST_PARTITIONS = 64


@dataclass(frozen=True, slots=True)
class CrawlVolume:
    """What is to be crawled, and how."""

    pages_per_day: float
    days: float
    """How long the crawl runs; rows and known URLs pile up so long."""
    page_bytes: float = f.PAGE_BYTES
    hosts: float = 100_000
    delay_s: float = 1.0
    fetch_s: float = 0.5
    urls_per_page: float = 4.0
    """Known URLs per fetched page."""
    retention_days: float = 7.0
    replication: int = 3
    scheduler_bytes: float = 4e9
    """Memory of one scheduler."""

    @property
    def pages(self) -> float:
        """Pages over the whole crawl."""
        return self.pages_per_day * self.days

    @property
    def pages_per_s(self) -> float:
        """The average rate."""
        return self.pages_per_day / DAY_S


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One line of a plan."""

    part: str
    what: str
    value: float
    unit: str
    how: str
    """The calculation in words."""
    source: str = ""


def politest_rate(target: CrawlVolume) -> float:
    """Pages per second that the delay of the hosts allows."""
    return target.hosts / (target.delay_s + target.fetch_s)


def cores(target: CrawlVolume, cpu: f.Figure, scaled: bool = False) -> float:
    """Cores in use at the average rate, with the reserve."""
    per_page = cpu.value * (target.page_bytes / f.PAGE_BYTES if scaled else 1)
    return target.pages_per_s * per_page / UTILISATION


def scheduler_memory(target: CrawlVolume) -> float:
    """Bytes of all schedulers together, without the programs themselves."""
    return target.pages * target.urls_per_page * f.SEEN_BYTES_PER_URL.value + target.hosts * f.HOST_BYTES.value


def topic_bytes_per_page(target: CrawlVolume) -> float:
    """Bytes that a page leaves in all topics, one replica."""
    body = target.page_bytes * (f.PAGE_RECORD_BYTES.value + f.OTHER_RECORD_BYTES.value)
    return body + target.urls_per_page * f.LOG_BYTES_PER_URL.value


def plan(target: CrawlVolume) -> list[PlanLine]:
    """All lines of the plan."""
    rate = target.pages_per_s
    used = f"{rate:,.0f} pages/s x CPU per page / {UTILISATION:g}"
    lines = [
        PlanLine("crawl", "pages in all", target.pages, "pages", "pages per day x days"),
        PlanLine("crawl", "pages per second", rate, "pages/s", "pages per day / 86,400"),
        PlanLine(
            "crawl",
            "pages per second that politeness allows",
            politest_rate(target),
            "pages/s",
            "hosts / (delay + fetch)",
        ),
        PlanLine("crawl", "known URLs", target.pages * target.urls_per_page, "URLs", "pages x known URLs per page"),
    ]
    in_flight = rate * target.fetch_s
    memory = scheduler_memory(target)
    needed = {
        "scheduler": (cores(target, f.SCHEDULER_CPU_S), memory / target.scheduler_bytes, f.SCHEDULER_CPU_S),
        "downloader": (cores(target, f.DOWNLOADER_CPU_S, True), in_flight / CONCURRENCY, f.DOWNLOADER_CPU_S),
        "parser": (cores(target, f.PARSER_CPU_S, True), 0.0, f.PARSER_CPU_S),
        "storage": (cores(target, f.STORAGE_CPU_S, True), 0.0, f.STORAGE_CPU_S),
    }
    why = {
        "scheduler": f"max(cores, memory / {target.scheduler_bytes / 1e9:g} GB)",
        "downloader": f"max(cores, fetches in flight / {CONCURRENCY})",
        "parser": "cores: a member uses one",
        "storage": "cores: a member uses one",
    }
    replicas = {}
    for part, (used_cores, other, figure) in needed.items():
        replicas[part] = max(1, math.ceil(max(used_cores, other)))
        lines.append(PlanLine(part, "cores", used_cores, "cores", used, figure.source))
        lines.append(PlanLine(part, "replicas", replicas[part], "", why[part], figure.source))
        if part != "scheduler":
            total = replicas[part] * f.SERVICE_BYTES.value
            lines.append(PlanLine(part, "memory", total, "B", "200 MB per replica", f.SERVICE_BYTES.source))
    own = replicas["scheduler"] * f.SERVICE_BYTES.value
    seen = f"{f.SEEN_BYTES_PER_URL.value:g} B x known URLs"
    disk = target.pages * (target.urls_per_page - 1) * f.QUEUED_BYTES.value
    hosts = f"{f.HOST_BYTES.value:g} B x hosts, 200 MB per replica, seen set"
    known = target.pages * target.urls_per_page
    partitions = max(LEAST_PARTITIONS, power_of_two(f.PARTITIONS_PER_MEMBER.value * max(replicas.values())))
    row = target.page_bytes * f.ROW_BYTES.value
    lines += _kafka(target, rate, partitions, used)
    lines += [
        PlanLine("scheduler", "seen set", known * f.SEEN_BYTES_PER_URL.value, "B", seen, f.SEEN_BYTES_PER_URL.source),
        PlanLine("scheduler", "memory", memory + own, "B", hosts, f.HOST_BYTES.source),
        PlanLine("scheduler", "disk", disk, "B", "144 B x queued URLs, none fetched again", f.QUEUED_BYTES.source),
        PlanLine("database", "cores", cores(target, f.DATABASE_CPU_S, True), "cores", used, f.DATABASE_CPU_S.source),
        PlanLine(
            "database", "size", target.pages * row, "B", f"{row:,.0f} B x pages, indices included", f.ROW_BYTES.source
        ),
        PlanLine(
            "network", "received from sites", rate * target.page_bytes, "B/s", "at most: pages without compression"
        ),
    ]
    order = ("crawl", "scheduler", "downloader", "parser", "storage", "kafka", "database", "network")
    return sorted(lines, key=lambda line: order.index(line.part))


def _kafka(target: CrawlVolume, rate: float, partitions: int, used: str) -> list[PlanLine]:
    """What topics and brokers need. `used`: how cores follow from CPU per page."""
    per_page = topic_bytes_per_page(target)
    kept_days = min(target.retention_days, target.days)
    stored = target.pages_per_day * kept_days * per_page * target.replication
    return [
        PlanLine(
            "kafka", "partitions", partitions, "", "16 per member, a power of two", f.PARTITIONS_PER_MEMBER.source
        ),
        PlanLine("kafka", "broker cores", cores(target, f.BROKER_CPU_S, True), "cores", used, f.BROKER_CPU_S.source),
        PlanLine("kafka", "bytes per page", per_page, "B", "all topics, one replica", f.PAGE_RECORD_BYTES.source),
        PlanLine("kafka", "written", rate * per_page, "B/s", "bytes per page x pages/s", f.PAGE_RECORD_BYTES.source),
        PlanLine(
            "kafka",
            "disk of all brokers",
            stored,
            "B",
            f"bytes per page x pages in {kept_days:g} days x {target.replication} replicas",
            f.PAGE_RECORD_BYTES.source,
        ),
    ]


def warnings(target: CrawlVolume) -> list[str]:
    """What stands against the plan."""
    found = []
    rate, allowed = target.pages_per_s, politest_rate(target)
    if allowed < rate:
        hosts = math.ceil(rate * (target.delay_s + target.fetch_s))
        needed = f"{hosts:,} hosts are needed at this delay"
        found.append(f"politeness allows {allowed:,.0f} pages per second, the target is {rate:,.0f}: {needed}")
    return found


def power_of_two(count: float) -> int:
    """The smallest power of two that is not below."""
    return int(2 ** max(0, math.ceil(math.log2(max(count, 1)))))
