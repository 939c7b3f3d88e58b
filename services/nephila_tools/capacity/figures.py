"""The measured figures that a capacity plan is computed from, and the limits of what was measured, with their sources.

A figure changes when its bench is measured again; docs/operations.md shows a plan, and a test recomputes it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number."""

    value: float
    source: str


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU of a service: per member and second, per message that is alone in its batch or shares it, per byte."""

    member: float
    """Cores of a member for its wake-ups, regardless of its load."""
    page_s: float
    """Seconds per page in full batches."""
    lone_page_s: float
    """Seconds per page where partitions get less than LONE_RATE pages per second, so each message is a batch."""
    byte_s: float
    """Seconds per byte of a page."""
    source: str


@dataclass(frozen=True, slots=True)
class Limit:
    """The end of what was measured or may work."""

    value: float
    unit: str
    source: str
    remedy: str


SERVICES = "benchmarks/results/20261122T030624Z-services.json"
WIRE = "benchmarks/results/20261122T185218Z-wire.json"
FRONTIER = "benchmarks/results/20261122T010824Z-frontier.json"
SEEN = "benchmarks/results/20261122T010457Z-seen.json"
SCALE = "docs/scale.md"

PAGE_BYTES = 80_000
"""Default size of a page."""
LONE_RATE, FULL_RATE = 0.5, 5.0
"""Pages per second and partition: below the first each message is its own batch, above the second batches are full."""

SCHEDULER_CPU = Cpu(0.064, 0.096e-3, 0.19e-3, 0.13e-9, SCALE)
DOWNLOADER_CPU = Cpu(0.028, 0.16e-3, 0.263e-3, 2.9e-9, SCALE)
PARSER_CPU = Cpu(0.025, 0.123e-3, 0.259e-3, 6.0e-9, SCALE)
STORAGE_CPU = Cpu(0.020, 0.059e-3, 0.187e-3, 0.26e-9, SCALE)
BROKER_CPU = Cpu(0.148, 0.196e-3, 0.835e-3, 3.4e-9, SCALE)
"""With one replica; followers are counted like leaders, which is not measured."""
DATABASE_CPU_S = Figure(0.183e-3, SERVICES)

TOPIC_PAGE_BYTES = Figure(98 + 58 + 43 + 600, WIRE)
"""Bytes in all topics but frontier per page of any size: request, outcome, receipt, metadata of page and record."""
TOPIC_BYTES = Figure((17_463 + 2_786 + 12_093 - 600) / 85_893, WIRE)
"""The same per byte of a page (zstd)."""
ROW_PAGE_BYTES = Figure(3_440, SCALE)
"""Growth of PostgreSQL per row, regardless of its size: 4,242 bytes for a page of 4.1 KB, 20,163 for one of 85.9 KB."""
ROW_BYTES = Figure((20_163 - 4_242) / (85_893 - 4_100), WIRE)
"""The same per byte of a page."""
LOG_BYTES_PER_URL = Figure(129, FRONTIER)
"""Bytes in the topic frontier per new URL."""
SEEN_BYTES_PER_URL = Figure(17.8, SEEN)
"""Memory of the seen set per known URL."""
HOST_BYTES = Figure(284, FRONTIER)
"""Memory per host: (493 MB - 31 MB program - 178 MB seen set) / 10⁶ hosts, with ten queued URLs each."""
QUEUED_BYTES = Figure(144, FRONTIER)
"""Disk of the scheduler per queued URL: 1,442 MB / 10⁷."""
SERVICE_BYTES = Figure(200e6, "benchmarks/results/20261121T114035Z-memory.json")
"""Memory of a program under load."""
PARTITIONS_PER_MEMBER = Figure(16, "docs/adr/0014-ring-with-a-memory.md")
"""Partitions per member for an even load."""
ROBOTS_DAYS = Figure(1.0, "docs/configuration.md")
"""Days until a robots.txt is fetched again (scheduler.robots_ttl_s)."""

KEYED_TOPICS = 3
LANED_TOPICS = 10
LANES_PER_MEMBER = Figure(4, "docs/adr/0274-lanes.md")
"""Lanes per member of a service for an even load."""
ROWS_PER_S = Limit(5_000, "rows/s per database", SCALE, "give --databases and as many addresses in `store`")
DATABASE_BYTES = Limit(20e12, "B per database", SCALE, "give --databases, or keep text out of the rows")
MEMBERS = Limit(1_000, "schedulers", SCALE, "give each scheduler more memory (--scheduler-memory-gb)")
TOPIC_REPLICAS = Limit(
    200_000, "partition replicas in one Kafka", SCALE, "fewer, larger schedulers, or several systems"
)
