"""A capacity plan: from a target to replicas, cores, memory, disks and bandwidth. Pure; each line has its source."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nephila.kernel.topics import DEFAULT_LANES

from nephila_tools.capacity import figures as f

DAY_S = 86_400.0
UTILISATION = 0.7
"""Share of a core that a plan uses; the rest is for peaks, restarts and recrawl."""
CONCURRENCY = 1000
"""Fetches at once of one downloader (downloader.concurrency)."""
LEAST_PARTITIONS = 64
SERVICES = {
    "scheduler": f.SCHEDULER_CPU,
    "downloader": f.DOWNLOADER_CPU,
    "parser": f.PARSER_CPU,
    "storage": f.STORAGE_CPU,
}


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
    databases: int = 1
    """PostgreSQL servers that share the rows."""
    partitions: int = 0
    """Partitions of each topic; 0: as many as the members need."""

    @property
    def pages(self) -> float:
        """Pages over the whole crawl."""
        return self.pages_per_day * self.days

    @property
    def pages_per_s(self) -> float:
        """The average rate."""
        return self.pages_per_day / DAY_S

    @property
    def robots_per_s(self) -> float:
        """Fetches of robots.txt: each host once, and again when it is too old."""
        return self.hosts * max(1.0, self.days / f.ROBOTS_DAYS.value) / (self.days * DAY_S)

    @property
    def fetches_per_s(self) -> float:
        """Pages and robots.txt."""
        return self.pages_per_s + self.robots_per_s


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


@dataclass(frozen=True, slots=True)
class Size:
    """Members of each service, and partitions."""

    partitions: int
    replicas: dict[str, int]

    @property
    def schedulers(self) -> int:
        """Members of the service scheduler."""
        return self.replicas["scheduler"]

    @property
    def lanes(self) -> int:
        """Partitions of the topics with lanes."""
        members = max(self.replicas.values())
        return min(max(DEFAULT_LANES, power_of_two(f.LANES_PER_MEMBER.value * members)), self.partitions)


def topic_partitions(size: Size) -> int:
    """Partitions of all topics together."""
    return f.KEYED_TOPICS * size.partitions + f.LANED_TOPICS * size.lanes


def politest_rate(target: CrawlVolume) -> float:
    """Fetches per second that the delay of the hosts allows, robots.txt included."""
    return target.hosts / (target.delay_s + target.fetch_s)


def cpu_per_page(target: CrawlVolume, cpu: f.Cpu, partitions: int) -> float:
    """CPU seconds of a service per page, without the part of its members. Between the two measured rates per partition
    the cost falls with the logarithm of the rate."""
    rate = max(target.pages_per_s / partitions, 1e-9)
    lone = 1 - math.log(rate / f.LONE_RATE) / math.log(f.FULL_RATE / f.LONE_RATE)
    lone = min(max(lone, 0.0), 1.0)
    return cpu.page_s + (cpu.lone_page_s - cpu.page_s) * lone + cpu.byte_s * target.page_bytes


def cores(target: CrawlVolume, service: str, size: Size) -> float:
    """Cores that the members of a service use at the average rate, without a reserve."""
    cpu = SERVICES[service]
    rate = target.pages_per_s
    robots = target.robots_per_s * cpu.page_s if service in ("scheduler", "downloader") else 0.0
    return rate * cpu_per_page(target, cpu, size.partitions) + robots + size.replicas[service] * cpu.member


def scheduler_memory(target: CrawlVolume) -> float:
    """Bytes of all schedulers together, without the programs themselves."""
    return target.pages * target.urls_per_page * f.SEEN_BYTES_PER_URL.value + target.hosts * f.HOST_BYTES.value


def topic_bytes_per_page(target: CrawlVolume) -> float:
    """Bytes that a page leaves in all topics, one replica."""
    page = f.TOPIC_PAGE_BYTES.value + target.page_bytes * f.TOPIC_BYTES.value
    return page + target.urls_per_page * f.LOG_BYTES_PER_URL.value


def row_bytes(target: CrawlVolume) -> float:
    """Bytes that a row adds to the database, indices included."""
    return f.ROW_PAGE_BYTES.value + target.page_bytes * f.ROW_BYTES.value


def size_of(target: CrawlVolume) -> Size:
    """Members and partitions. More partitions make messages dearer, which may need more members: two rounds."""
    size = Size(target.partitions or LEAST_PARTITIONS, dict.fromkeys(SERVICES, 1))
    for _ in range(2):
        replicas = {}
        for service, cpu in SERVICES.items():
            work = cores(target, service, Size(size.partitions, {service: 0}))
            replicas[service] = math.ceil(work / (UTILISATION - cpu.member))
        replicas["scheduler"] = max(replicas["scheduler"], math.ceil(scheduler_memory(target) / target.scheduler_bytes))
        in_flight = target.fetches_per_s * target.fetch_s
        replicas["downloader"] = max(replicas["downloader"], math.ceil(in_flight / CONCURRENCY))
        replicas = {service: max(count, 1) for service, count in replicas.items()}
        needed = power_of_two(f.PARTITIONS_PER_MEMBER.value * max(replicas.values()))
        size = Size(target.partitions or max(LEAST_PARTITIONS, needed), replicas)
    return size


def plan(target: CrawlVolume) -> list[PlanLine]:
    """All lines of the plan."""
    size = size_of(target)
    lines = [*_crawl(target), *_services(target, size), *_memory(target, size), *_kafka(target, size)]
    row = row_bytes(target)
    rate = target.pages_per_s
    lines += [
        PlanLine(
            "database",
            "cores",
            rate * f.DATABASE_CPU_S.value / UTILISATION,
            "cores",
            f"{rate:,.0f} rows/s x CPU per row / {UTILISATION:g}",
            f.DATABASE_CPU_S.source,
        ),
        PlanLine(
            "database", "size", target.pages * row, "B", f"{row:,.0f} B x pages, indices included", f.ROW_BYTES.source
        ),
        PlanLine("database", "servers", target.databases, "", "--databases", f.ROWS_PER_S.source),
        PlanLine(
            "network", "received from sites", rate * target.page_bytes, "B/s", "at most: pages without compression"
        ),
    ]
    return lines


def _crawl(target: CrawlVolume) -> list[PlanLine]:
    allowed = "pages per second that politeness allows"
    return [
        PlanLine("crawl", "pages in all", target.pages, "pages", "pages per day x days"),
        PlanLine("crawl", "pages per second", target.pages_per_s, "pages/s", "pages per day / 86,400"),
        PlanLine(
            "crawl",
            "robots.txt per second",
            target.robots_per_s,
            "fetches/s",
            f"each host once per {f.ROBOTS_DAYS.value:g} days",
            f.ROBOTS_DAYS.source,
        ),
        PlanLine(
            "crawl", allowed, politest_rate(target) - target.robots_per_s, "pages/s", "hosts / (delay + fetch) - robots"
        ),
        PlanLine("crawl", "known URLs", target.pages * target.urls_per_page, "URLs", "pages x known URLs per page"),
    ]


def _services(target: CrawlVolume, size: Size) -> list[PlanLine]:
    """Cores, replicas and memory of each service."""
    why = {
        "scheduler": f"max(cores, memory / {target.scheduler_bytes / 1e9:g} GB)",
        "downloader": f"max(cores, fetches in flight / {CONCURRENCY})",
        "parser": "cores: a member uses one",
        "storage": "cores: a member uses one",
    }
    lines = []
    for service, cpu in SERVICES.items():
        page_ms = 1e3 * cpu_per_page(target, cpu, size.partitions)
        how = f"({page_ms:.2f} ms x pages/s + {cpu.member:g} x replicas) / {UTILISATION:g}"
        count = size.replicas[service]
        lines.append(PlanLine(service, "cores", cores(target, service, size) / UTILISATION, "cores", how, cpu.source))
        lines.append(PlanLine(service, "replicas", count, "", why[service], cpu.source))
        if service != "scheduler":
            total = count * f.SERVICE_BYTES.value
            lines.append(PlanLine(service, "memory", total, "B", "200 MB per replica", f.SERVICE_BYTES.source))
    return lines


def _memory(target: CrawlVolume, size: Size) -> list[PlanLine]:
    """What schedulers keep."""
    urls = target.pages * target.urls_per_page
    seen = f"{f.SEEN_BYTES_PER_URL.value:g} B x known URLs"
    hosts = f"{f.HOST_BYTES.value:g} B x hosts, 200 MB per replica, seen set"
    memory = scheduler_memory(target) + size.schedulers * f.SERVICE_BYTES.value
    disk = target.pages * (target.urls_per_page - 1) * f.QUEUED_BYTES.value
    return [
        PlanLine("scheduler", "seen set", urls * f.SEEN_BYTES_PER_URL.value, "B", seen, f.SEEN_BYTES_PER_URL.source),
        PlanLine("scheduler", "memory", memory, "B", hosts, f.HOST_BYTES.source),
        PlanLine("scheduler", "disk", disk, "B", "144 B x queued URLs, none fetched again", f.QUEUED_BYTES.source),
    ]


def _kafka(target: CrawlVolume, size: Size) -> list[PlanLine]:
    """What topics and brokers need."""
    rate = target.pages_per_s
    per_page = topic_bytes_per_page(target)
    kept_days = min(target.retention_days, target.days)
    stored = target.pages_per_day * kept_days * per_page * target.replication
    cpu = f.BROKER_CPU
    used = target.replication * (cpu.member + rate * cpu_per_page(target, cpu, size.partitions)) / UTILISATION
    replicas = topic_partitions(size) * target.replication
    how = f"({cpu.member:g} + CPU per page x pages/s) x {target.replication} replicas / {UTILISATION:g}"
    basis = "--partitions" if target.partitions else "16 per member, a power of two"
    return [
        PlanLine("kafka", "partitions", size.partitions, "", basis, f.PARTITIONS_PER_MEMBER.source),
        PlanLine("kafka", "lanes", size.lanes, "", "kafka.lanes: 4 per member", f.LANES_PER_MEMBER.source),
        PlanLine(
            "kafka",
            "partition replicas",
            replicas,
            "",
            f"({f.KEYED_TOPICS} topics x partitions + {f.LANED_TOPICS} x lanes) x replicas",
        ),
        PlanLine("kafka", "broker cores", used, "cores", how, cpu.source),
        PlanLine("kafka", "bytes per page", per_page, "B", "all topics, one replica", f.TOPIC_BYTES.source),
        PlanLine("kafka", "written", rate * per_page, "B/s", "bytes per page x pages/s", f.TOPIC_BYTES.source),
        PlanLine(
            "kafka",
            "disk of all brokers",
            stored,
            "B",
            f"bytes per page x pages in {kept_days:g} days x {target.replication} replicas",
            f.TOPIC_BYTES.source,
        ),
    ]


def refusals(target: CrawlVolume) -> list[str]:
    """Why the plan cannot be: each limit that it passes, with its source and the remedy. Empty: none."""
    size = size_of(target)
    reasons = []
    allowed, fetches = politest_rate(target), target.fetches_per_s
    if allowed < fetches:
        hosts = math.ceil(
            target.pages_per_s / (1 / (target.delay_s + target.fetch_s) - target.robots_per_s / target.hosts)
        )
        reasons.append(
            f"politeness allows {allowed:,.0f} fetches per second, the plan has {fetches:,.0f} with robots.txt: "
            + (f"{hosts:,} hosts are needed at this delay" if hosts > 0 else "robots.txt alone takes longer")
        )
    for value, limit in (
        (target.pages_per_s / target.databases, f.ROWS_PER_S),
        (target.pages * row_bytes(target) / target.databases, f.DATABASE_BYTES),
        (size.schedulers, f.MEMBERS),
        (topic_partitions(size) * target.replication, f.TOPIC_REPLICAS),
    ):
        if value > limit.value:
            reasons.append(
                f"{value:,.0f} {limit.unit} are more than {limit.value:,.0f} ({limit.source}): {limit.remedy}"
            )
    return reasons


def power_of_two(count: float) -> int:
    """The smallest power of two that is not below."""
    return int(2 ** max(0, math.ceil(math.log2(max(count, 1)))))
